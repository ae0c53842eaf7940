package mcmc

import (
	"encoding/binary"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/diag"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// Draws are the draws of all chains, on the host, in the run's type: PerChain draws of each of Chains chains, [D] each.
type Draws struct {
	Chains, PerChain, Dim int

	dtype compute.DType
	raw   []byte // [Chains, PerChain, Dim], as tensors have it
	// divergent is 1 where the transition that ended at a draw diverged, [Chains, PerChain]; nil if the kernel does not
	// report it.
	divergent []float64
}

func newDraws(chains, perChain, dim int, dtype compute.DType) *Draws {
	return &Draws{
		Chains: chains, PerChain: perChain, Dim: dim, dtype: dtype, raw: make([]byte, chains*perChain*dim*dtype.Size()),
	}
}

// row is the part of raw that has some draws of a chain, from one of them on.
func (d *Draws) row(chain, from, draws int) []byte {
	size := d.Dim * d.dtype.Size()
	return d.raw[(chain*d.PerChain+from)*size:][:draws*size]
}

func (d *Draws) value(at int) float64 {
	if d.dtype == compute.Float64 {
		return math.Float64frombits(binary.NativeEndian.Uint64(d.raw[8*at:]))
	}
	return float64(math.Float32frombits(binary.NativeEndian.Uint32(d.raw[4*at:])))
}

// At copies one draw of one chain, both counted from 0: [D].
func (d *Draws) At(chain, draw int) []float64 {
	out := make([]float64, d.Dim)
	for i := range out {
		out[i] = d.value((chain*d.PerChain+draw)*d.Dim + i)
	}
	return out
}

// Coordinate copies the draws of one coordinate, chain after chain: Chains slices of PerChain numbers, as convergence
// diagnostics take them.
func (d *Draws) Coordinate(k int) [][]float64 {
	out := make([][]float64, d.Chains)
	for chain := range out {
		out[chain] = make([]float64, d.PerChain)
		for draw := range out[chain] {
			out[chain][draw] = d.value((chain*d.PerChain+draw)*d.Dim + k)
		}
	}
	return out
}

// Tensor copies all draws, chain after chain, into a tensor of the run's type on the host: [Chains PerChain, D]. There
// must be a draw.
func (d *Draws) Tensor() *tensors.Tensor {
	t := tensors.FromShape(shapes.Make(d.dtype, d.Chains*d.PerChain, d.Dim))
	t.MutableBytes(func(raw []byte) { copy(raw, d.raw) }) //nolint:errcheck // it is on the host
	return t
}

// equal is all draws as particles of equal weight, chain after chain.
func (d *Draws) equal() bayes.Draws {
	return bayes.Draws{
		Phi: d.Tensor(), LogWeights: bayes.EqualLogWeights(d.Chains * d.PerChain), Chains: d.Chains,
	}
}

// Sample is the draws for diag.OfSample; the coordinates of the problem are the parameters.
func (d *Draws) Sample() diag.Sample {
	values := make([]float64, d.Chains*d.PerChain*d.Dim)
	for i := range values {
		values[i] = d.value(i)
	}
	return diag.Sample{Values: values, Chains: d.Chains, Draws: d.PerChain, Parameters: d.Dim}
}

// Divergent says which of the transitions that ended at the draws diverged, [Chains][PerChain], for figures; nil if the
// kernel does not report it. With Chains.Thin above 1 ChainStats.Divergences counts more, since it counts every
// transition.
func (d *Draws) Divergent() [][]bool {
	var out [][]bool
	for chain := range slices.Chunk(d.divergent, max(1, d.PerChain)) {
		diverged := make([]bool, len(chain))
		for draw, v := range chain {
			diverged[draw] = v != 0
		}
		out = append(out, diverged)
	}
	return out
}

// set stores a row of phi, [..., D], as the next draw of each of some chains, of which kept gives the number. The first
// chain's row is `first`.
func (d *Draws) set(chains []int, kept func(chain int) int, phi *tensors.Tensor, first int) error {
	return phi.ConstBytes(func(raw []byte) {
		for _, chain := range chains {
			row := d.row(chain, kept(chain), 1)
			copy(row, raw[(first+chain)*len(row):])
		}
	})
}

// diverges stores Info.Divergent of the transition that ended at a draw of a chain.
func (d *Draws) diverges(chain, draw int, value float64) {
	if d.divergent == nil {
		d.divergent = make([]float64, d.Chains*d.PerChain)
	}
	d.divergent[chain*d.PerChain+draw] = value
}

// first returns the first perChain draws of each chain; d itself if it has no more.
func (d *Draws) first(perChain int) *Draws {
	if perChain == d.PerChain {
		return d
	}
	out := newDraws(d.Chains, perChain, d.Dim, d.dtype)
	for chain := range d.Chains {
		copy(out.row(chain, 0, perChain), d.row(chain, 0, perChain))
		if d.divergent != nil {
			for draw, v := range d.divergent[chain*d.PerChain:][:perChain] {
				out.diverges(chain, draw, v)
			}
		}
	}
	return out
}

// adopt takes draws of a checkpoint, [Chains n, D] with n at most PerChain.
func (d *Draws) adopt(t *tensors.Tensor) error {
	n := t.Shape().Dim(0) / d.Chains
	return t.ConstBytes(func(raw []byte) {
		for chain := range d.Chains {
			row := d.row(chain, 0, n)
			copy(row, raw[chain*len(row):])
		}
	})
}

// ChainStats summarise one chain's transitions after the warm-up. A number that the kernel does not report is NaN or 0.
type ChainStats struct {
	Transitions int
	Acceptance  float64 // mean probability
	Steadiness  float64 // mean of Info.Steadiness; 0 if the kernel does not report it
	Accepted    int     // transitions that moved
	// Standstill is the largest number of successive transitions without a move. A chain that stands still for a quarter
	// of its transitions began far out, or the common step size is too large where it is: begin elsewhere (Problem.Start,
	// Problem.Climb), or run a longer warm-up.
	Standstill int
	// Divergences are the transitions that diverged (Info.Divergent): the step is too long for a narrow region of the
	// target, which chains then avoid, so that the draws are biased. Take an Acceptance of HMC or NUTS nearer to 1, such
	// as 0.95, or other parameters in which the region is not narrow. Draws.Divergent says where it is.
	Divergences int
	// NonFinite are proposals that were not finite. Kernels that accept or reject reject them, which is right. ULA,
	// SGLD and SGHMC go back to the last point with a finite gradient, so that many make their draws wrong: take a
	// smaller step.
	NonFinite   int
	Gradients   int // evaluated in the transitions
	Evaluations Evaluations
	// mean estimated variance of the log-ratio that accepts or rejects, over the transitions where it is finite; 0 if the
	// kernel knows the ratio, as without mini-batches
	Noise           float64
	MaxEnergyError  float64 // largest absolute energy error, over the finite ones
	MeanEnergyError float64 // mean absolute energy error, over the finite ones
	// energy Bayesian fraction of missing information: the mean squared change of the energy from one transition to the
	// next, over its variance. Below 0.3 fresh momenta explore the energies slowly (Betancourt 2016): the target has heavy
	// tails, or a coordinate sets the width of others, as the scale of a hierarchical prior does; take other parameters
	EnergyBFMI float64
	// means of Info.Extra, by name, over the transitions where it is finite; NaN if it never is
	Extra map[string]float64
}

// tally sums up a chain's transitions after the warm-up. All numbers are finite, so that JSON holds them.
type tally struct {
	Transitions int     `json:"transitions"`
	Kept        int     `json:"kept"`   // draws
	Closed      bool    `json:"closed"` // all draws are made: further transitions do not count
	Acceptance  float64 `json:"acceptance"`
	Steadiness  float64 `json:"steadiness,omitempty"`
	Accepted    int     `json:"accepted"`
	Standing    int     `json:"standing"`   // transitions since the chain last moved
	Standstill  int     `json:"standstill"` // the largest Standing so far
	Divergences int     `json:"divergences"`
	NonFinite   int     `json:"non_finite"`
	Gradients   int     `json:"gradients"`
	// of Evaluations
	Full             int `json:"full"`
	FullGradients    int `json:"full_gradients"`
	Partial          int `json:"partial"`
	PartialGradients int `json:"partial_gradients"`

	Noises   int     `json:"noises"` // variances of the log-ratio that are finite
	SumNoise float64 `json:"sum_noise"`

	Errors       int     `json:"errors"` // energy errors that are finite
	MaxError     float64 `json:"max_error"`
	SumError     float64 `json:"sum_error"`
	Energies     int     `json:"energies"`
	Energy       float64 `json:"energy"` // the last
	MeanEnergy   float64 `json:"mean_energy"`
	SquareEnergy float64 `json:"square_energy"` // sum of squared deviations
	SquareJump   float64 `json:"square_jump"`   // sum of squared differences of successive energies

	Extra map[string]finiteSum `json:"extra,omitempty"` // of Info.Extra
}

// finiteSum is the sum of the finite numbers, and their count.
type finiteSum struct {
	Count int     `json:"count"`
	Sum   float64 `json:"sum"`
}

// add adds a move of a chain, and says whether the chain completed a transition in it.
func (t *tally) add(outcome moveRecord, chain int, carries Carries) (ended bool) {
	if t.Closed {
		return false
	}
	t.NonFinite += int(outcome.of(infoNonFinite, chain, 0))
	if outcome.of(infoComplete, chain, 1) == 0 {
		return false
	}
	t.Transitions++
	t.Acceptance += finiteOr(outcome.of(infoAcceptance, chain, 0), 0)
	t.Steadiness += finiteOr(outcome.of(infoSteadiness, chain, 0), 0)
	t.Accepted += int(outcome.of(infoAccepted, chain, 0))
	if t.Standing++; outcome.of(infoAccepted, chain, 1) != 0 {
		t.Standing = 0
	}
	t.Standstill = max(t.Standstill, t.Standing)
	t.Divergences += int(outcome.of(infoDivergent, chain, 0))
	t.addEvaluations(outcome, chain, carries)
	if v := outcome.of(infoNoise, chain, math.NaN()); finite(v) {
		t.Noises++
		t.SumNoise += v
	}
	t.addEnergy(outcome, chain)
	for name, v := range outcome.extra(chain) {
		if t.Extra == nil {
			t.Extra = map[string]finiteSum{}
		}
		sum := t.Extra[name]
		if finite(v) {
			sum.Count++
			sum.Sum += v
		}
		t.Extra[name] = sum
	}
	return true
}

// addEvaluations adds what the transition has evaluated. A kernel whose moves are whole transitions need not report it:
// it is taken to be one gradient for a kernel that carries the gradient, and one log-density for one that carries only
// that.
func (t *tally) addEvaluations(outcome moveRecord, chain int, carries Carries) {
	several := outcome.moves.reports(infoComplete)
	each, once := 0., 0. // gradients and log-densities, if not reported
	switch {
	case several:
	case carries == CarriesGradient:
		each = 1
	case carries == CarriesLogDensity:
		once = 1
	}
	gradients := int(outcome.of(infoLength, chain, each))
	t.Gradients += gradients
	if carries == CarriesGradient || carries == CarriesNothing && !several { // else Length counts moves
		t.FullGradients += gradients
	}
	t.Full += int(outcome.of(infoFull, chain, once))
	t.Partial += int(outcome.of(infoPartial, chain, 0))
	t.PartialGradients += int(outcome.of(infoPartialGradients, chain, 0))
}

// addEnergy adds the energy at the transition's start and its error, as far as they are finite.
func (t *tally) addEnergy(outcome moveRecord, chain int) {
	if e := math.Abs(outcome.of(infoEnergyError, chain, math.NaN())); finite(e) {
		t.Errors++
		t.SumError += e
		t.MaxError = max(t.MaxError, e)
	}
	if e := outcome.of(infoEnergy, chain, math.NaN()); finite(e) {
		if t.Energies > 0 {
			t.SquareJump += (e - t.Energy) * (e - t.Energy)
		}
		t.Energies++
		t.Energy = e
		deviation := e - t.MeanEnergy
		t.MeanEnergy += deviation / float64(t.Energies)
		t.SquareEnergy += deviation * (e - t.MeanEnergy)
	}
}

// stats returns the chain's statistics; acceptance says whether the kernel reports it, share is
// Evaluations.PartialShare.
func (t *tally) stats(acceptance bool, share float64) ChainStats {
	s := ChainStats{
		Transitions: t.Transitions, Acceptance: math.NaN(), Accepted: t.Accepted, Standstill: t.Standstill,
		Divergences: t.Divergences, NonFinite: t.NonFinite, Gradients: t.Gradients,
		Evaluations:    Evaluations{t.Full, t.FullGradients, t.Partial, t.PartialGradients, share},
		MaxEnergyError: math.NaN(), MeanEnergyError: math.NaN(), EnergyBFMI: math.NaN(),
	}
	if acceptance && t.Transitions > 0 {
		s.Acceptance = t.Acceptance / float64(t.Transitions)
	}
	s.Steadiness = t.Steadiness / float64(max(1, t.Transitions))
	if t.Noises > 0 {
		s.Noise = t.SumNoise / float64(t.Noises)
	}
	if t.Errors > 0 {
		s.MaxEnergyError, s.MeanEnergyError = t.MaxError, t.SumError/float64(t.Errors)
	}
	if t.SquareEnergy > 0 {
		s.EnergyBFMI = t.SquareJump / t.SquareEnergy
	}
	for name, sum := range t.Extra {
		if s.Extra == nil {
			s.Extra = map[string]float64{}
		}
		s.Extra[name] = sum.Sum / float64(sum.Count)
	}
	return s
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func finiteOr(x, otherwise float64) float64 {
	if finite(x) {
		return x
	}
	return otherwise
}

package mcmc

import (
	"encoding/binary"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/diag"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// Draws are the draws of all chains, on the host, in the run's type: PerChain draws of each of Chains chains, [D] each.
type Draws struct {
	Chains, PerChain, Dim int

	dtype  compute.DType
	tensor *tensors.Tensor // [Chains PerChain, Dim], on the host
	raw    []byte          // of the tensor
}

func newDraws(chains, perChain, dim int, dtype compute.DType) *Draws {
	d := &Draws{Chains: chains, PerChain: perChain, Dim: dim, dtype: dtype,
		tensor: tensors.FromShape(shapes.Make(dtype, chains*perChain, dim))}
	d.tensor.MutableBytes(func(raw []byte) { d.raw = raw }) //nolint:errcheck // it is on the host
	return d
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

// Tensor is all draws, chain after chain, in the run's type on the host: [Chains PerChain, D]. It shares the memory of
// the draws, which may be gigabytes.
func (d *Draws) Tensor() *tensors.Tensor { return d.tensor }

// Sample is the draws for diag.OfSample; the coordinates of the problem are the parameters.
func (d *Draws) Sample() diag.Sample {
	values := make([]float64, d.Chains*d.PerChain*d.Dim)
	for i := range values {
		values[i] = d.value(i)
	}
	return diag.Sample{Values: values, Chains: d.Chains, Draws: d.PerChain, Parameters: d.Dim}
}

// first returns the first perChain draws of each chain; d itself if it has no more.
func (d *Draws) first(perChain int) *Draws {
	if perChain == d.PerChain {
		return d
	}
	return d.copied(perChain)
}

// copied copies the first perChain draws of each chain.
func (d *Draws) copied(perChain int) *Draws {
	out := newDraws(d.Chains, perChain, d.Dim, d.dtype)
	for chain := range d.Chains {
		copy(out.row(chain, 0, perChain), d.row(chain, 0, perChain))
	}
	return out
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
	// as 0.95, or other parameters in which the region is not narrow.
	Divergences int
	// NonFinite are proposals that were not finite. Kernels that accept or reject reject them, which is right. SGLD
	// and SGHMC go back to the last point with a finite gradient, so that many make their draws wrong: take a
	// smaller step.
	NonFinite   int
	Gradients   int // evaluated in the transitions
	Evaluations Evaluations
	// mean estimated variance of the log-ratio that accepts or rejects, over the transitions where it is finite; 0 if the
	// kernel knows the ratio, as without mini-batches
	Noise float64
	// energy Bayesian fraction of missing information: the mean squared change of the energy from one transition to the
	// next, over its variance. Below 0.3 fresh momenta explore the energies slowly (Betancourt 2016): the target has heavy
	// tails, or a coordinate sets the width of others, as the scale of a hierarchical prior does; take other parameters
	EnergyBFMI float64
	// means of Info.Extra, by name, over the transitions where it is finite; NaN if it never is
	Extra map[string]float64
}

// tally sums up a chain's transitions after the warm-up: its ChainStats have sums in place of means. All numbers are
// finite, so that JSON holds them.
type tally struct {
	ChainStats
	Kept     int `json:"kept"`     // draws
	Standing int `json:"standing"` // transitions since the chain last moved
	Noises   int `json:"noises"`   // variances of the log-ratio that are finite

	Energies     int     `json:"energies"`
	Energy       float64 `json:"energy"` // the last
	MeanEnergy   float64 `json:"mean_energy"`
	SquareEnergy float64 `json:"square_energy"` // sum of squared deviations
	SquareJump   float64 `json:"square_jump"`   // sum of squared differences of successive energies

	Extras map[string]int `json:"extras,omitempty"` // the numbers in each sum of Extra
}

// add adds a move of a chain, and says whether the chain completed a transition in it.
func (t *tally) add(outcome moveRecord, chain int) (ended bool) {
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
	e := &t.Evaluations
	e.FullGradients += int(outcome.of(infoLength, chain, 0))
	e.Full += int(outcome.of(infoFull, chain, 0))
	e.Partial += int(outcome.of(infoPartial, chain, 0))
	e.PartialGradients += int(outcome.of(infoPartialGradients, chain, 0))
	if v := outcome.of(infoNoise, chain, math.NaN()); finite(v) {
		t.Noises++
		t.Noise += v
	}
	t.addEnergy(outcome, chain)
	for i, name := range outcome.moves.carrier.extra {
		if t.Extra == nil {
			t.Extra, t.Extras = map[string]float64{}, map[string]int{}
		}
		v := outcome.extra(i, chain)
		t.Extra[name] += finiteOr(v, 0)
		if finite(v) {
			t.Extras[name]++
		}
	}
	return true
}

// addEnergy adds the energy at the transition's start, if it is finite.
func (t *tally) addEnergy(outcome moveRecord, chain int) {
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
	s, n := t.ChainStats, float64(t.Transitions)
	s.Gradients, s.Evaluations.PartialShare = s.Evaluations.FullGradients, share
	if s.Acceptance /= n; !acceptance {
		s.Acceptance = math.NaN()
	}
	s.Steadiness /= max(1, n)
	s.Noise /= max(1, float64(t.Noises))
	s.EnergyBFMI = t.SquareJump / t.SquareEnergy // NaN if there is none
	s.Extra = nil
	for name, sum := range t.Extra {
		if s.Extra == nil {
			s.Extra = map[string]float64{}
		}
		s.Extra[name] = sum / float64(t.Extras[name])
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

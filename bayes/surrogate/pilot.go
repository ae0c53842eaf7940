package surrogate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/internal/stats"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// The bounds of a pilot's decision, as measured on networks of 121 and 1071 parameters. A surrogate whose log-density
// is off by a standard deviation of .35 over the posterior is accepted with probability .8, and one of 1.2 with .4.
// |z|^2/D, the spread, is 1 in the mean if the posterior is the Gaussian of its mode (its Laplace approximation). Where
// chains are farther out, as with posteriors of weakly identified networks, every surrogate is rejected.
const (
	// the standard deviation that is good enough, and the largest; the smallest gain; the bounds of the spread
	pilotWanted      = .35
	pilotMost        = 1.2
	pilotLeastGain   = 1.3
	pilotLeastSpread = .7
	pilotMostSpread  = 1.4
	// the acceptance from which a step is taken: shorter steps cost more in gradients than they save in rejections
	pilotStepAcceptance = .6
)

// pilotStates is the number of states at which surrogates are tested, over all chains.
const pilotStates = 200

// pilotShares are the m/N that are tried.
var pilotShares = []float64{.001, .003, .01, .03, .1}

// Pilot is the outcome of a pilot run, which says whether a surrogate pays for a posterior. It measures this on a short
// chain of SplitHMC with the target's own gradient, and never on draws of the Laplace approximation, where surrogates
// look far better than on the posterior.
type Pilot struct {
	Spread float64 // mean of |z|^2/D over the states: 1 if the posterior is the Laplace approximation
	Tried  []Trial // in the order of m; none if the spread decided
	Rows   int     // m that was chosen; 0: no surrogate
	Reason string  // the reason for the decision, with its numbers, in one line

	states int // number of states that were tested
	// target is the kernel that moved by the target's gradient: among the steps pi/2, .75, .5, .25 and .1 the first that
	// is accepted with a mean probability of .6. acceptance is the acceptance of this kernel.
	target     SplitHMC
	acceptance float64
	// cost counts the pilot's evaluations: of the target, by the chains (with their warm-ups) and at the states; and of
	// the parts that were tried, the gradients for the surrogate and its log-densities at the states. elapsed is the time
	// of all this.
	cost    mcmc.Evaluations
	elapsed time.Duration
	ends    []float64 // [Chains, D] flat, the last states of the chains
	chosen  *control
	problem Problem
}

// Trial holds a pilot's measurements of the surrogate of m rows.
type Trial struct {
	Rows, Of int
	Name     string  // of the surrogate, as Part has it
	SD       float64 // s, standard deviation over the states of log p less the surrogate's
	// Predicted is the acceptance of trajectories on the surrogate, 2 Phi(-s/sqrt 2). Gain is the number of effective
	// draws per forward pass, relative to sampling with the target's own gradient. Both take a/(2 - a) effective draws
	// for a transition of a chain that is accepted with probability a and otherwise stays.
	Predicted, Gain float64
}

// String is the decision in one line.
func (p *Pilot) String() string { return p.Reason }

// pilotSteps are the kernels on the target's own gradient that are tried in turn, from the longest step, which is best
// for a Gaussian, to the shortest, until one is accepted often enough.
var pilotSteps = []SplitHMC{
	{StepSize: mostAngle, Steps: 1}, {StepSize: .75, Steps: 2}, {StepSize: .5, Steps: 3}, {StepSize: .25, Steps: 4},
	{StepSize: .1, Steps: 6},
}

// onSurrogate is the kernel on a surrogate of m of N rows.
func onSurrogate(m, n int) SplitHMC {
	return SplitHMC{StepSize: .75 / 1.1, Steps: 2, Jitter: .1, OnSurrogate: true, Share: float64(m) / float64(n)}
}

// newPilot measures on a short chain whether a surrogate from a part of the rows pays, and chooses m. It takes the
// smallest of the shares of N whose log-density has an error with a standard deviation of at most .35. If there is
// none, it takes the share with the largest predicted gain. It chooses no surrogate if the gain is below 1.3, the
// standard deviation above 1.2, or the mean of |z|^2/D outside .7 to 1.4. If the chains that look for a step are
// clearly outside these bounds, nothing else that it could measure would change the answer, and the pilot ends there.
func newPilot(ctx context.Context, problem Problem, w *Whitening, s Settings) (*Pilot, error) {
	began := time.Now()
	p := &Pilot{problem: problem}
	states, err := p.walk(ctx, w, s, true)
	if err != nil {
		return nil, err
	}
	if !p.near() {
		p.decide(-1)
	} else if err := p.try(ctx, w, s, states); err != nil {
		return nil, err
	}
	p.elapsed = time.Since(began)
	return p, nil
}

// near says whether the posterior is close to its Laplace approximation, by the mean of |z|^2/D.
func (p *Pilot) near() bool { return p.Spread >= pilotLeastSpread && p.Spread <= pilotMostSpread }

// clearlyOutside says whether the chains, which start inside the bound, are beyond it by more than chance explains: by
// more than four standard errors. For the Gaussian, |z|^2/D has variance 2/D; all states of a chain count as one here,
// however weakly they are correlated.
func (p *Pilot) clearlyOutside(chains int) bool {
	return p.Spread > pilotMostSpread*(1+4*math.Sqrt(2/float64(p.problem.Dim*chains)))
}

// pilots counts the pilots, which tells their problems apart.
var pilots atomic.Uint64

// pilotPortion is the number of draws of a chain that are examined at a time.
const pilotPortion = 10

// walk runs the short chains, first to find the step and then to collect states, and returns these, [States, D] flat.
// With early it stops once the chains show that no surrogate pays, and returns the last states only.
func (p *Pilot) walk(ctx context.Context, w *Whitening, s Settings, early bool) (states []float64, err error) {
	on, err := w.near(p.problem.Problem, s.Chains, s.DType, s.Seed)
	if err != nil {
		return nil, err
	}
	on = on.Keyed("pilot", pilots.Add(1)) // its programs are for all portions of these chains
	sample := func(kernel SplitHMC, warmUp, draws int, seed uint64) (*mcmc.Result, error) {
		r, err := mcmc.Sample(ctx, on, kernel, mcmc.Settings{
			Chains: s.Chains, Draws: draws, WarmUp: warmUp, Seed: seed, DType: s.DType, Engine: s.Engine,
		})
		p.cost.FullGradients += (max(0, warmUp) + draws) * s.Chains * kernel.Steps // also where none was accepted
		if err := r.Unusable(ctx, err); err != nil {
			return nil, fmt.Errorf("the pilot's chains with the target's gradient: %w", err)
		}
		p.ends = endsOf(r.Draws)
		on.Start = p.starts(s.DType)
		return r, nil
	}
	// The step.
	for i, kernel := range pilotSteps {
		r, err := sample(kernel, 10, pilotPortion, s.Seed)
		if err != nil && (i+1 == len(pilotSteps) || !errors.Is(err, mcmc.ErrStuck)) {
			return nil, err
		} else if err != nil {
			continue
		}
		p.target, p.acceptance = kernel, acceptanceOf(r)
		if states = p.look(w, r); p.acceptance >= pilotStepAcceptance {
			break
		}
	}
	if early && p.clearlyOutside(s.Chains) {
		return states, nil
	}
	// The states.
	each, acceptance := (pilotStates+s.Chains-1)/s.Chains, 0.
	states = nil
	spread := 0.
	for drawn := 0; drawn < each; drawn += pilotPortion {
		draws := min(pilotPortion, each-drawn)
		r, err := sample(p.target, mcmc.NoWarmUp, draws, s.Seed+uint64(drawn)+1)
		if err != nil {
			return nil, err
		}
		some := p.look(w, r)
		if early && p.clearlyOutside(s.Chains) {
			return some, nil
		}
		states = append(states, some...)
		spread += p.Spread * float64(draws) / float64(each)
		acceptance += acceptanceOf(r) * float64(draws) / float64(each)
	}
	p.states, p.Spread, p.acceptance = each*s.Chains, spread, acceptance
	return states, nil
}

// acceptanceOf is the mean acceptance of a run's chains.
func acceptanceOf(r *mcmc.Result) (mean float64) {
	for _, c := range r.Stats {
		mean += c.Acceptance / float64(len(r.Stats))
	}
	return mean
}

// look measures the spread, the mean of |z|^2/D, over a run's draws, and returns these, flat.
func (p *Pilot) look(w *Whitening, r *mcmc.Result) (states []float64) {
	p.states, p.Spread = r.Draws.Chains*r.Draws.PerChain, 0
	for chain := range r.Draws.Chains {
		for draw := range r.Draws.PerChain {
			at := r.Draws.At(chain, draw)
			states = append(states, at...)
			z := w.zOf(at)
			p.Spread += floats.Dot(z, z) / float64(len(z)*p.states)
		}
	}
	return states
}

// endsOf returns the chains' last draws, [J, D] flat.
func endsOf(d *mcmc.Draws) (ends []float64) {
	for chain := range d.Chains {
		ends = append(ends, d.At(chain, d.PerChain-1)...)
	}
	return ends
}

// starts returns the last states of the pilot's chains, [Chains, D].
func (p *Pilot) starts(dtype compute.DType) *tensors.Tensor {
	return compute.Floats(dtype, p.ends, len(p.ends)/p.problem.Dim, p.problem.Dim)
}

// try tests surrogates of the given shares, in ascending order, until the standard deviation of one is small enough.
func (p *Pilot) try(ctx context.Context, w *Whitening, s Settings, states []float64) error {
	truth, evaluated, err := densitiesAt(ctx, s.Engine, p.problem, states)
	if err != nil {
		return err
	}
	p.cost.Full += evaluated
	best, rows := -1, 0
	var controls []*control
	for _, share := range s.shares {
		m := max(1, int(math.Round(share*float64(p.problem.Rows))))
		if m <= rows {
			continue // the same for a small N
		}
		rows = m
		part, err := p.problem.Part(m, w.Mode)
		if err != nil {
			return err
		}
		c, err := w.expand(ctx, s.Engine, p.problem.Problem, part)
		if err != nil {
			return err
		}
		cheap, evaluated, err := densitiesAt(ctx, s.Engine, Problem{Problem: c.alone()}, states)
		if err != nil {
			return err
		}
		p.cost = p.cost.Plus(c.cost()).Plus(mcmc.Evaluations{Partial: evaluated, PartialShare: part.share()})
		trial := p.trial(part, truth, cheap)
		p.Tried, controls = append(p.Tried, trial), append(controls, c)
		if best < 0 || trial.SD <= pilotWanted || trial.Gain > p.Tried[best].Gain {
			best = len(p.Tried) - 1
		}
		if trial.SD <= pilotWanted {
			break
		}
	}
	p.decide(best)
	if p.Rows > 0 {
		p.chosen = controls[best]
	}
	return nil
}

// trial judges a surrogate by its log-densities and the true ones at the states, [States] each.
func (p *Pilot) trial(part Part, truth, cheap []float64) Trial {
	off := make([]float64, len(truth))
	floats.SubTo(off, truth, cheap)
	t := Trial{Rows: part.Rows, Of: part.Of, Name: part.Name, SD: stat.StdDev(off, nil)}
	if !finite(t.SD) {
		t.SD = math.Inf(1)
	}
	t.Predicted = math.Erfc(t.SD / 2) // 2 Phi(-s/sqrt 2)
	draws := func(a float64) float64 { return a / (2 - a) }
	kernel := onSurrogate(part.Rows, part.Of)
	on := mcmc.Evaluations{Full: 1, PartialGradients: kernel.Steps, PartialShare: kernel.Share}
	own := mcmc.Evaluations{FullGradients: p.target.Steps}
	t.Gain = draws(t.Predicted) / on.Forwards() / (draws(p.acceptance) / own.Forwards())
	return t
}

// decide chooses a trial, or none, and says why.
func (p *Pilot) decide(best int) {
	spread := fmt.Sprintf("|z|^2/D is %.3g over %d states", p.Spread, p.states)
	if best < 0 {
		p.Reason = fmt.Sprintf("surrogate off: %s, outside %v to %v: the posterior is not near the Gaussian of its mode",
			spread, pilotLeastSpread, pilotMostSpread)
		return
	}
	t := p.Tried[best]
	numbers := fmt.Sprintf("%s with %d of %d rows: s %.3g, predicted acceptance %.2g, gain %.2g; %s", t.Name, t.Rows, t.Of,
		t.SD, t.Predicted, t.Gain, spread)
	switch {
	case t.SD > pilotMost:
		p.Reason = fmt.Sprintf("surrogate off: s above %v: %s", pilotMost, numbers)
	case !(t.Gain >= pilotLeastGain):
		p.Reason = fmt.Sprintf("surrogate off: gain below %v: %s", pilotLeastGain, numbers)
	default:
		p.Rows, p.Reason = t.Rows, "surrogate on: "+numbers
	}
}

// densitiesAt evaluates a problem's log-density at points, [S, D] flat, in float64. evaluated is the number of
// evaluations: S rounded up to blocks of equal size.
func densitiesAt(
	ctx context.Context, engine *compute.Engine, problem Problem, states []float64,
) (all []float64, evaluated int, err error) {
	p, err := newPlaces(ctx, engine, problem)
	if err != nil {
		return nil, 0, err
	}
	defer p.Close()
	for block := range slices.Chunk(states, blockSize*p.dim) {
		n := len(block) / p.dim
		if len(states) > blockSize*p.dim { // one compiled program: the last block is padded
			block = slices.Concat(block, make([]float64, blockSize*p.dim-len(block)))
		}
		values, err := p.logDensities(block)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, values[:n]...)
	}
	return all, p.Forwards, nil
}

// alone is the surrogate as a problem.
func (c *control) alone() density.Problem {
	data := c.data(compute.Float64)
	for name, t := range c.w.tensors(compute.Float64) {
		data[name] = t
	}
	return density.Problem{
		Dim: len(c.w.Mode), Data: data, Target: func(data compute.Nodes, _ []*graph.Node) density.Target {
			return c.target(c.w.of(func(name string) *graph.Node { return data[whiteningPrefix+name] }), data)
		},
	}
}

// chose returns the problem that the pilot has chosen, and its kernel, for as many chains of the given type as the
// pilot's: they begin at the last states of those.
func (p *Pilot) chose(w *Whitening, dtype compute.DType) (density.Problem, SplitHMC) {
	problem := p.problem.Problem
	problem.Start = p.starts(dtype)
	if p.chosen != nil {
		return p.chosen.on(problem, dtype), onSurrogate(p.Rows, problem.Rows)
	}
	return w.on(problem, dtype, nil, nil), p.target
}

// The bounds within which a run is as the pilot predicted.
const (
	stickyStandstill = 30 // at most so many successive transitions are rejected
	stickyShare      = 4  // the smallest effective sample size is at least a quarter of the median
)

// sticky warns where a run on the surrogate is so much worse than the pilot predicted that its draws are doubtful. The
// signs are an acceptance under half the prediction (0: there was none) and more than 30 rejections in a row. Given the
// parameters' effective sample sizes (nil: too few draws), another is a smallest one under a quarter of the median.
func sticky(r *mcmc.Result, predicted float64, ess []float64) (warnings []string) {
	acceptance, standing := acceptanceOf(r), 0
	for _, c := range r.Stats {
		standing = max(standing, c.Standstill)
	}
	var why []string
	if acceptance < predicted/2 {
		why = append(why, fmt.Sprintf("acceptance is %.2g, and %.2g was predicted", acceptance, predicted))
	}
	if standing > stickyStandstill {
		why = append(why, fmt.Sprintf("a chain stood still for %d trajectories", standing))
	}
	if len(ess) > 1 {
		if least, middle := slices.Min(ess), stats.Median(ess); least < middle/stickyShare {
			why = append(why, fmt.Sprintf("the smallest effective sample size is %.3g, the median %.3g", least, middle))
		}
	}
	if len(why) > 0 {
		warnings = append(warnings, "sticky: on the surrogate "+strings.Join(why, "; ")+": the chain has found places where "+
			"the surrogate is wrong; take more rows, or the target's gradient")
	}
	return warnings
}

package surrogate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// The bounds of a pilot's decision, as measured on networks of 121 and 1071 parameters. A surrogate whose log-density
// is off by a standard deviation of .35 over the posterior is accepted with probability .8.
// |z|^2/D, the spread, is 1 in the mean if the posterior is the Gaussian of its mode (its Laplace approximation). Where
// chains are farther out, as with posteriors of weakly identified networks, every surrogate is rejected.
const (
	// the largest standard deviation; the smallest gain; the bounds of the spread
	pilotMost        = .35
	pilotLeastGain   = 1.3
	pilotLeastSpread = .7
	pilotMostSpread  = 1.4
	// the acceptance from which a step is taken: shorter steps cost more in gradients than they save in rejections
	pilotStepAcceptance = .6
)

// pilotStates is the number of states at which surrogates are tested, over all chains.
const pilotStates = 200

// pilot is a pilot run, which measures whether a surrogate pays for a posterior. It does so on a short chain of
// splitHMC with the target's own gradient, and never on draws of the Laplace approximation, where surrogates look far
// better than on the posterior.
type pilot struct {
	job    *fit.Job // without a checkpoint and reports
	of     posterior
	w      *whitening
	chains int

	spread float64 // mean of |z|^2/D over the states: 1 if the posterior is the Laplace approximation
	states int     // number of states that were tested
	tried  *trial  // the last surrogate that was tested; nil if the spread decided
	on     bool    // it was chosen
	reason string  // the reason for the decision, with its numbers, in one line

	// target is the kernel that moved by the target's gradient: among the steps pi/2, .75, .5, .25 and .1 the first that
	// is accepted with a mean probability of .6. acceptance is the acceptance of this kernel.
	target     splitHMC
	acceptance float64
	ends       []float64 // [Chains, D] flat, the last states of the chains
}

// trial holds a pilot's measurements of the surrogate of m rows.
type trial struct {
	*control
	sd float64 // s, standard deviation over the states of log p less the surrogate's
	// predicted is the acceptance of trajectories on the surrogate, 2 Phi(-s/sqrt 2). gain is the number of effective
	// draws per forward pass, relative to sampling with the target's own gradient. Both take a/(2 - a) effective draws
	// for a transition of a chain that is accepted with probability a and otherwise stays.
	predicted, gain float64
}

// pilotSteps are the kernels on the target's own gradient that are tried in turn, from the longest step, which is best
// for a Gaussian, to the shortest, until one is accepted often enough.
var pilotSteps = []splitHMC{
	{StepSize: math.Pi / 2, Steps: 1}, {StepSize: .75, Steps: 2}, {StepSize: .5, Steps: 3}, {StepSize: .25, Steps: 4},
	{StepSize: .1, Steps: 6},
}

// onSurrogate is the kernel on the surrogate of a part.
func onSurrogate(part subset) splitHMC {
	return splitHMC{StepSize: .75 / 1.1, Steps: 2, Jitter: .1, OnSurrogate: true, Share: part.share()}
}

// decide measures on a short chain whether a surrogate from a part of the rows pays, and chooses m. It takes the
// smallest of the shares of N whose log-density has an error with a standard deviation of at most .35. It chooses no
// surrogate if there is none, the gain is below 1.3, or the mean of |z|^2/D outside .7 to 1.4. If the chains that look
// for a step are clearly outside these bounds, nothing else that it could measure would change the answer, and the
// pilot ends there.
func (p *pilot) decide(ctx context.Context) error {
	states, err := p.walk(ctx)
	switch {
	case err != nil:
		return err
	case p.of.part == nil: // it has looked for a step alone
		return nil
	case p.near():
		if err := p.try(ctx, states); err != nil {
			return err
		}
	}
	p.choose()
	return nil
}

// near says whether the posterior is close to its Laplace approximation, by the mean of |z|^2/D.
func (p *pilot) near() bool { return p.spread >= pilotLeastSpread && p.spread <= pilotMostSpread }

// clearlyOutside says whether the chains, which start inside the bound, are beyond it by more than chance explains: by
// more than four standard errors. For the Gaussian, |z|^2/D has variance 2/D; all states of a chain count as one here,
// however weakly they are correlated.
func (p *pilot) clearlyOutside() bool {
	return p.spread > pilotMostSpread*(1+4*math.Sqrt(2/float64(p.of.Dim*p.chains)))
}

// pilots counts the pilots, which tells their problems apart.
var pilots atomic.Uint64

// pilotPortion is the number of draws of a chain that are examined at a time.
const pilotPortion = 10

// walk runs the short chains, first to find the step and then to collect states, and returns these, [States, D] flat.
// Where a surrogate could be taken it stops once the chains show that none pays, and returns the last states only.
func (p *pilot) walk(ctx context.Context) (states []float64, err error) {
	early := p.of.part != nil
	on := p.w.on(p.of.Problem, p.job.DType, nil, nil)
	on.Start = p.w.starts(p.chains, p.job.DType, p.job.Seed)
	on = on.Keyed("pilot", pilots.Add(1)) // its programs are for all portions of these chains
	sample := func(kernel splitHMC, warmUp, draws int, seed uint64) (*mcmc.Details, error) {
		stage, err := p.job.RunStage(ctx, fit.Stage{
			Name: "pilot", Problem: on, Seed: seed, Inner: true,
			Method: mcmc.Chains{Kernel: kernel, Chains: p.chains, Draws: draws, WarmUp: warmUp},
		})
		if err == nil && stage.Status.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("surrogate: the pilot's chains with the target's gradient: %w", err)
		}
		r := fit.Details[*mcmc.Details](stage)
		p.ends = endsOf(r.Draws)
		on.Start = p.starts()
		return r, nil
	}
	// The step.
	for i, kernel := range pilotSteps {
		r, err := sample(kernel, 10, pilotPortion, 0)
		if err != nil && (i+1 == len(pilotSteps) || !errors.Is(err, mcmc.ErrStuck)) {
			return nil, err
		} else if err != nil {
			continue
		}
		p.target, p.acceptance = kernel, acceptanceOf(r)
		if states = p.look(r); p.acceptance >= pilotStepAcceptance {
			break
		}
	}
	if early && p.clearlyOutside() {
		return states, nil
	}
	// The states.
	each, acceptance := (pilotStates+p.chains-1)/p.chains, 0.
	states = nil
	spread := 0.
	for drawn := 0; drawn < each; drawn += pilotPortion {
		draws := min(pilotPortion, each-drawn)
		r, err := sample(p.target, mcmc.NoWarmUp, draws, uint64(drawn)+1)
		if err != nil {
			return nil, err
		}
		some := p.look(r)
		if early && p.clearlyOutside() {
			return some, nil
		}
		states = append(states, some...)
		spread += p.spread * float64(draws) / float64(each)
		acceptance += acceptanceOf(r) * float64(draws) / float64(each)
	}
	p.states, p.spread, p.acceptance = each*p.chains, spread, acceptance
	return states, nil
}

// acceptanceOf is the mean acceptance of a run's chains.
func acceptanceOf(r *mcmc.Details) (mean float64) {
	for _, c := range r.Stats {
		mean += c.Acceptance / float64(len(r.Stats))
	}
	return mean
}

// look measures the spread, the mean of |z|^2/D, over a run's draws, and returns these, flat.
func (p *pilot) look(r *mcmc.Details) (states []float64) {
	p.states, p.spread = r.Draws.Chains*r.Draws.PerChain, 0
	for chain := range r.Draws.Chains {
		for draw := range r.Draws.PerChain {
			at := r.Draws.At(chain, draw)
			states = append(states, at...)
			z := p.w.zOf(at)
			p.spread += floats.Dot(z, z) / float64(len(z)*p.states)
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
func (p *pilot) starts() *tensors.Tensor {
	return compute.Floats(p.job.DType, p.ends, p.chains, p.of.Dim)
}

// pilotShares are the shares of the rows that are tried.
var pilotShares = []float64{.001, .003, .01, .03, .1}

// try tests surrogates of the shares of the rows, in ascending order, until the standard deviation of one is small
// enough.
func (p *pilot) try(ctx context.Context, states []float64) error {
	truth, err := densitiesAt(ctx, p.job.Engine, p.of, states)
	if err != nil {
		return err
	}
	rows := 0
	for _, share := range pilotShares {
		m := max(1, int(math.Round(share*float64(p.of.Rows))))
		if m <= rows {
			continue // the same for a small N
		}
		rows = m
		part, err := p.of.part(m)
		if err != nil {
			return err
		}
		c, err := p.w.expand(ctx, p.job.Engine, part)
		if err != nil {
			return err
		}
		cheap, err := densitiesAt(ctx, p.job.Engine, posterior{Problem: c.alone()}, states)
		if err != nil {
			return err
		}
		if p.tried = p.trial(c, truth, cheap); p.tried.sd <= pilotMost {
			break
		}
	}
	return nil
}

// trial judges a surrogate by its log-densities and the true ones at the states, [States] each.
func (p *pilot) trial(c *control, truth, cheap []float64) *trial {
	off := make([]float64, len(truth))
	floats.SubTo(off, truth, cheap)
	t := &trial{control: c, sd: stat.StdDev(off, nil)}
	if !finite(t.sd) {
		t.sd = math.Inf(1)
	}
	t.predicted = math.Erfc(t.sd / 2) // 2 Phi(-s/sqrt 2)
	draws := func(a float64) float64 { return a / (2 - a) }
	kernel := onSurrogate(c.part)
	on := mcmc.Evaluations{Full: 1, PartialGradients: kernel.Steps, PartialShare: kernel.Share}
	own := mcmc.Evaluations{FullGradients: p.target.Steps}
	t.gain = draws(t.predicted) / on.Forwards() / (draws(p.acceptance) / own.Forwards())
	return t
}

// choose decides for the last trial, or against it, and says why.
func (p *pilot) choose() {
	spread := fmt.Sprintf("|z|^2/D is %.3g over %d states", p.spread, p.states)
	t := p.tried
	if t == nil {
		p.reason = fmt.Sprintf("surrogate off: %s, outside %v to %v: the posterior is not near the Gaussian of its mode",
			spread, pilotLeastSpread, pilotMostSpread)
		return
	}
	numbers := fmt.Sprintf("order 2 with %d of %d rows: s %.3g, predicted acceptance %.2g, gain %.2g; %s", t.part.rows,
		t.part.of, t.sd, t.predicted, t.gain, spread)
	switch {
	case t.sd > pilotMost:
		p.reason = fmt.Sprintf("surrogate off: s above %v: %s", pilotMost, numbers)
	case !(t.gain >= pilotLeastGain):
		p.reason = fmt.Sprintf("surrogate off: gain below %v: %s", pilotLeastGain, numbers)
	default:
		p.on, p.reason = true, "surrogate on: "+numbers
	}
}

// densitiesAt evaluates a problem's log-density at points, [S, D] flat, in float64.
func densitiesAt(
	ctx context.Context, engine *compute.Engine, problem posterior, states []float64,
) ([]float64, error) {
	p, err := newPlaces(ctx, engine, problem)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.logDensities(states)
}

// alone is the surrogate as a problem.
func (c *control) alone() density.Problem {
	data := c.data(compute.Float64)
	for name, t := range c.w.tensors(compute.Float64) {
		data[name] = t
	}
	return density.Problem{
		Dim: len(c.w.mode), Data: data, Target: func(data compute.Nodes, _ []*graph.Node) density.Target {
			return c.target(whiteningOf(data), data)
		},
	}
}

// chosen returns the problem that the pilot has chosen, and its kernel: the chains begin at the last states of the
// pilot's.
func (p *pilot) chosen() (density.Problem, splitHMC) {
	problem := p.of.Problem
	problem.Start = p.starts()
	if !p.on {
		return p.w.on(problem, p.job.DType, nil, nil), p.target
	}
	return p.tried.on(problem, p.job.DType), onSurrogate(p.tried.part)
}

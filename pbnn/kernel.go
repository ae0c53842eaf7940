package pbnn

import (
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
)

// Proposal says how theta' is proposed.
type Proposal string

// The proposals.
const (
	// randomWalk proposes theta' = theta + sqrt(2 eta) eps (section 4.1). The default.
	randomWalk Proposal = "random walk"
	// Langevin proposes theta' = theta - eta grad L(theta) + sqrt(2 eta) eps, with the gradient estimated from
	// mini-batches of its own (section 6.2, eq. 29).
	Langevin Proposal = "Langevin"
)

// kernel is one step of Algorithm 1 for all chains at once. It carries nothing from step to step: both losses are
// evaluated again on each step's mini-batches.
type kernel struct {
	Proposal Proposal `json:"proposal"`
	Estimate Estimate `json:"estimate"`
	Rule     Rule     `json:"rule"`
	StepSize float64  `json:"step_size"` // h = sqrt(2 eta); 0: a warm-up chooses
}

var _ mcmc.Tunable = kernel{}

// Traits implements mcmc.Kernel: with Gaussian noise the penalty leaves the target invariant.
func (k kernel) Traits() mcmc.Traits { return mcmc.Traits{Exact: k.Rule != Naive} }

// Check implements mcmc.Kernel: the samplers have checked their settings.
func (k kernel) Check(int) error { return nil }

// Tune implements mcmc.Tunable: the acceptance rates that are best without noise (Roberts and Rosenthal 2001). Since
// noise lowers the acceptance, a warm-up that reaches them finds shorter steps.
func (k kernel) Tune() (stepSize, acceptance float64) {
	if k.Proposal == Langevin {
		return k.StepSize, 0.574
	}
	return k.StepSize, 0.234
}

// Move implements mcmc.Kernel: steps (a) to (f) of Algorithm 1.
func (k kernel) Move(
	rng random.Stream, s mcmc.State, target density.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	losses := byMiniBatches(target)
	proposal, logRatio := k.propose(rng, s.Phi, losses, tuning) // (a)
	next, info := Judge(rng, s, proposal, logRatio, losses, k.Estimate, k.Rule)
	if k.Proposal == Langevin { // whose gradients are at the same places as the log-densities
		info.PartialGradients = info.Partial
	}
	return next, info
}

// Judge accepts or rejects a proposal by mini-batches: steps (b) to (f) of Algorithm 1, for kernels that propose in
// their own way. The proposal is [J, D]; logRatio is log q(theta | theta') - log q(theta' | theta), [J]. It builds
// graph, and panics unless the target is a density.MiniBatchTarget, such as the target of Data.MiniBatches.
func Judge(
	rng random.Stream, s mcmc.State, proposal, logRatio *graph.Node, target density.Target, e Estimate, r Rule,
) (mcmc.State, mcmc.Info) {
	noise := e.of(byMiniBatches(target).Differences(rng.Named("differences"), s.Phi, proposal)) // (b), (c)
	return r.judge(rng, s, proposal, logRatio, noise)
}

// byMiniBatches is the target as one that mini-batches estimate; it panics if it is none.
func byMiniBatches(target density.Target) density.MiniBatchTarget {
	losses, ok := target.(density.MiniBatchTarget)
	if !ok {
		panic(fmt.Errorf("pbnn: the target, %T, gives no differences by mini-batches", target))
	}
	return losses
}

// judge accepts or rejects the proposal, [J, D], given the log-ratio of the proposal densities, [J].
func (r Rule) judge(
	rng random.Stream, s mcmc.State, proposal, logRatio *graph.Node, noise noisyDifference,
) (mcmc.State, mcmc.Info) {
	logRatio = graph.Add(logRatio, r.logRatio(noise))                      // (d): eq. 14 and 30
	arrives := compute.RowsAll(graph.IsFinite(proposal), proposal.DType()) // [J]
	finite := graph.And(arrives, graph.And(graph.IsFinite(noise.delta), graph.IsFinite(logRatio)))
	accepted, info := mcmc.Accept(rng, logRatio, finite) // (e), (f)
	info.Noise = noise.variance
	if noise.skewness != nil {
		info.Extra = map[string]*graph.Node{skewnessName: noise.skewness}
	}
	info.Partial = graph.MulScalar(graph.OnesLike(logRatio), 2) // at both places
	next := s
	next.Phi = mcmc.Choose(accepted, proposal, s.Phi)
	return next, info
}

// walk is the random walk's theta', [J, D]; the ratio of its proposal densities is 1.
func (k kernel) walk(rng random.Stream, theta *graph.Node, tuning mcmc.Tuning) *graph.Node {
	z := rng.Named("proposal").Normal(theta.DType(), theta.Shape().Dimensions...)
	return graph.Add(theta, graph.Mul(tuning.Scaled(z), tuning.Step(theta, k.StepSize)))
}

// propose gives theta', [J, D], and log q(theta | theta') - log q(theta' | theta), [J].
//
// Langevin's step is, with h = sqrt(2 eta), xi the rows of some mini-batches, and g(theta) = -grad L(theta) on these,
//
//	theta' = theta + (h^2/2) g(theta) + h z,   q(theta' | theta) = N(theta'; theta + (h^2/2) g(theta), h^2)
//
// so, up to a constant, log q(theta' | theta) = -|z|^2/2 and log q(theta | theta') = -|z'|^2/2, where z' = (theta -
// theta' - (h^2/2) g(theta'))/h is the noise that would lead back: eq. 31, the difference of the kinetic energies
// before and after a leapfrog step (Neal 2011, section 5.2). Both gradients use the same xi, and delta uses other
// mini-batches, independent of xi. Given xi this is a Metropolis-Hastings step with an exactly known proposal density,
// so that eq. 15 holds for each xi. If delta shared the mini-batches it would be biased: proposals go where the errors
// of xi make the loss look small.
func (k kernel) propose(
	rng random.Stream, theta *graph.Node, losses density.MiniBatchTarget, tuning mcmc.Tuning,
) (proposal, logRatio *graph.Node) {
	if k.Proposal == randomWalk {
		return k.walk(rng, theta, tuning), graph.Zeros(theta.Graph(), mcmc.State{Phi: theta}.PerParticle())
	}
	z := rng.Named("proposal").Normal(theta.DType(), theta.Shape().Dimensions...)
	h := tuning.Step(theta, k.StepSize)
	xi := losses.WithMiniBatch(rng.Named("gradient"))
	here := mcmc.Start(mcmc.MALA{}, rng, theta, xi)
	there, back := mcmc.Leapfrog(xi, here, z, h, tuning)
	logRatio = graph.Sub(mcmc.Kinetic(z), mcmc.Kinetic(back))
	// a gradient that is not finite is replaced by 0 in the states: such a proposal is rejected
	usable := graph.And(graph.IsFinite(here.LogDensity), graph.IsFinite(there.LogDensity))
	return there.Phi, graph.Where(usable, logRatio, graph.MulScalar(graph.OnesLike(logRatio), math.Inf(-1)))
}

package shards

import (
	"cmp"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/pbnn"

	"github.com/gomlx/gomlx/core/graph"
)

// walk is the random walk's kernel. Shards are asked between moves, so the differences of a proposal are known one move
// later: a move judges the proposal that it carries, then makes the next one. The checks and the tuning are those of
// the Metropolis's own kernel.
type walk struct {
	mcmc.Tunable
	Estimate pbnn.Estimate
	Rule     pbnn.Rule
	StepSize float64
}

var _ mcmc.Stateful = walk{}

// Start implements mcmc.Stateful.
func (k walk) Start(rng random.Stream, s mcmc.State, _ density.Target) mcmc.State {
	k.StepSize = cmp.Or(k.StepSize, 1) // unknown until the warm-up's first step
	s.Auxiliary = map[string]*graph.Node{"proposal": k.propose(rng, s.Phi, mcmc.Tuning{})}
	return s
}

// Move implements mcmc.Kernel.
func (k walk) Move(
	rng random.Stream, s mcmc.State, target density.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	equal := graph.Zeros(s.Phi.Graph(), s.PerParticle())
	next, info := pbnn.Judge(rng, s, s.Auxiliary["proposal"], equal, target, k.Estimate, k.Rule)
	next.Auxiliary = map[string]*graph.Node{"proposal": k.propose(rng, next.Phi, tuning)}
	return next, info
}

// propose gives theta', [J, D].
func (k walk) propose(rng random.Stream, theta *graph.Node, tuning mcmc.Tuning) *graph.Node {
	z := rng.Named("proposal").Normal(theta.DType(), theta.Shape().Dimensions...)
	return graph.Add(theta, graph.Mul(tuning.Scaled(z), tuning.Step(theta, k.StepSize)))
}

// answered is the mini-batch target of one move, made of the shards' answers, the differences of the log-likelihood,
// [J, M], and the prior.
type answered struct {
	bound   *bayes.BoundModel
	answers *graph.Node
}

var _ density.MiniBatchTarget = answered{}

// Differences implements density.MiniBatchTarget.
func (t answered) Differences(
	_ random.Stream, from, to *graph.Node,
) (estimates, variance *graph.Node, degrees float64) {
	prior := graph.Sub(t.bound.LogPrior(to), t.bound.LogPrior(from))
	return graph.Add(t.answers, graph.BroadcastToShape(graph.ExpandAxes(prior, 1), t.answers.Shape())), nil, 0
}

// WithMiniBatch implements density.MiniBatchTarget: the shards have drawn the rows.
func (t answered) WithMiniBatch(random.Stream) density.Target { return t }

// LogDensity implements density.Target: NaN, as shards are not asked for it and no kernel over shards uses it.
func (t answered) LogDensity(phi *graph.Node) *graph.Node {
	return graph.MulScalar(graph.OnesLike(t.bound.LogPrior(phi)), math.NaN())
}

// Gradient implements density.Target: NaN, as LogDensity.
func (t answered) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	return t.LogDensity(phi), graph.MulScalar(graph.OnesLike(phi), math.NaN())
}

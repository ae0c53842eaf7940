package pbnn

import (
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
)

// remote is the random walk's kernel over shards. Shards are asked between moves, so the differences of a proposal are
// known one move later: a move judges the proposal that it carries, then makes the next one.
type remote struct{ kernel }

var _ mcmc.Stateful = remote{}

// Start implements mcmc.Stateful.
func (k remote) Start(rng random.Stream, s mcmc.State) mcmc.State {
	tuning := mcmc.Tuning{}
	if k.StepSize == 0 { // unknown until the warm-up's first step
		k.StepSize = 1
	}
	s.Auxiliary = map[string]*graph.Node{"proposal": k.walk(rng, s.Phi, tuning)}
	return s
}

// Move implements mcmc.Kernel.
func (k remote) Move(
	rng random.Stream, s mcmc.State, target mcmc.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	proposal := s.Auxiliary["proposal"]
	noise := k.Estimate.of(byMiniBatches(target).Differences(rng, s.Phi, proposal))
	next, info := k.Rule.judge(rng, s, proposal, graph.ZerosLike(noise.delta), noise)
	next.Auxiliary = map[string]*graph.Node{"proposal": k.walk(rng, next.Phi, tuning)}
	return next, info
}

// remoteLangevin is the kernel of Langevin's proposal over shards. A step takes two moves, the same for all chains. The
// first proposes, with the gradient at the chains' positions. The second accepts or rejects, with the differences and
// with the gradient at the proposals, which is from the same rows as the first. Carried from move to move are the
// proposal, whether there is one, the kinetic energy of the noise it was made with, and its momentum (see
// kernel.propose).
type remoteLangevin struct{ kernel }

var _ mcmc.Stateful = remoteLangevin{}

// Start implements mcmc.Stateful.
func (k remoteLangevin) Start(_ random.Stream, s mcmc.State) mcmc.State {
	zero := graph.Zeros(s.Phi.Graph(), s.PerParticle())
	s.Auxiliary = map[string]*graph.Node{
		"proposal": s.Phi, "proposed": zero, "kinetic": zero, "momentum": graph.ZerosLike(s.Phi),
	}
	return s
}

// Move implements mcmc.Kernel.
func (k remoteLangevin) Move(
	rng random.Stream, s mcmc.State, target mcmc.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	proposed := graph.GreaterThan(s.Auxiliary["proposed"], graph.ZerosLike(s.Auxiliary["proposed"])) // [J]
	asked := byMiniBatches(target)
	_, gradient := asked.WithMiniBatch(rng).Gradient(mcmc.Choose(proposed, s.Auxiliary["proposal"], s.Phi))
	h := graph.BroadcastToShape(tuning.Step(s.Phi, k.StepSize), s.Phi.Shape())
	push := graph.MulScalar(graph.Mul(h, tuning.Scaled(gradient)), 0.5)

	z := rng.Named("proposal").Normal(s.Phi.DType(), s.Phi.Shape().Dimensions...)
	momentum := graph.Add(z, push)
	proposal := graph.Add(s.Phi, graph.Mul(h, tuning.Scaled(momentum)))

	back := graph.Add(s.Auxiliary["momentum"], push)
	noise := k.Estimate.of(asked.Differences(rng, s.Phi, s.Auxiliary["proposal"]))
	kinetic := graph.Sub(s.Auxiliary["kinetic"], mcmc.Kinetic(back))
	judged, info := k.Rule.judge(rng, s, s.Auxiliary["proposal"], kinetic, noise)

	zero := graph.ZerosLike(s.Auxiliary["kinetic"])
	next := s
	next.Phi = mcmc.Choose(proposed, judged.Phi, s.Phi)
	next.Auxiliary = map[string]*graph.Node{
		"proposal": proposal, "kinetic": mcmc.Kinetic(z), "momentum": momentum,
		"proposed": graph.ConvertDType(graph.Not(proposed), s.Phi.DType()),
	}
	info.Complete = s.Auxiliary["proposed"]
	info.NonFinite = graph.Where(proposed, info.NonFinite, zero)
	info.Length = graph.AddScalar(zero, 2)
	info.PartialGradients = info.Partial
	return next, info
}

// shardTarget is the mini-batch target of one move, made of the shards' answers and the prior: the differences of the
// log-likelihood, [J, M], and its gradients at the places that shards were asked about, [J, D], nil for a random walk.
type shardTarget struct {
	bound             *bayes.BoundModel
	answers, gradient *graph.Node
}

var _ mcmc.MiniBatchTarget = shardTarget{}

func (t shardTarget) Differences(
	_ random.Stream, from, to *graph.Node,
) (estimates, variance *graph.Node, degrees float64) {
	prior := graph.Sub(t.bound.LogPrior(to), t.bound.LogPrior(from))
	return graph.Add(t.answers, graph.BroadcastToShape(graph.ExpandAxes(prior, 1), t.answers.Shape())), nil, 0
}

// WithMiniBatch implements mcmc.MiniBatchTarget: the shards have drawn the rows.
func (t shardTarget) WithMiniBatch(random.Stream) mcmc.Target { return t }

// LogDensity implements mcmc.Target: NaN, as shards are not asked for it and no kernel over shards uses it.
func (t shardTarget) LogDensity(phi *graph.Node) *graph.Node {
	return graph.MulScalar(graph.OnesLike(t.bound.LogPrior(phi)), math.NaN())
}

// Gradient implements mcmc.Target, at the places that shards were asked about; the log-density is NaN.
func (t shardTarget) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	logDensity = t.LogDensity(phi)
	if t.gradient == nil {
		return logDensity, graph.MulScalar(graph.OnesLike(phi), math.NaN())
	}
	return logDensity, graph.Add(t.gradient, graph.Gradient(graph.ReduceAllSum(t.bound.LogPrior(phi)), phi)[0])
}

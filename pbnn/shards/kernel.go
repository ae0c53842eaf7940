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

// kernel is the common part of both kernels over shards: the checks and the tuning of the Metropolis's own kernel.
type kernel struct {
	mcmc.Tunable
	Estimate pbnn.Estimate
	Rule     pbnn.Rule
	StepSize float64
}

// walk is the random walk's kernel. Shards are asked between moves, so the differences of a proposal are known one move
// later: a move judges the proposal that it carries, then makes the next one.
type walk struct{ kernel }

var _ mcmc.Stateful = walk{}

// Start implements mcmc.Stateful.
func (k walk) Start(rng random.Stream, s mcmc.State) mcmc.State {
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

// langevin is the kernel of Langevin's proposal. A step takes two moves, the same for all chains. The first proposes,
// with the gradient at the chains' positions. The second accepts or rejects, with the differences and with the gradient
// at the proposals, which is from the same rows as the first. Carried from move to move are the proposal, whether there
// is one, the kinetic energy of the noise it was made with, and its momentum (see pbnn's Langevin proposal).
type langevin struct{ kernel }

var _ mcmc.Stateful = langevin{}

// Start implements mcmc.Stateful.
func (k langevin) Start(_ random.Stream, s mcmc.State) mcmc.State {
	zero := graph.Zeros(s.Phi.Graph(), s.PerParticle())
	s.Auxiliary = map[string]*graph.Node{
		"proposal": s.Phi, "proposed": zero, "kinetic": zero, "momentum": graph.ZerosLike(s.Phi),
	}
	return s
}

// Move implements mcmc.Kernel.
func (k langevin) Move(
	rng random.Stream, s mcmc.State, target density.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	proposed := graph.GreaterThan(s.Auxiliary["proposed"], graph.ZerosLike(s.Auxiliary["proposed"])) // [J]
	asked := target.(density.MiniBatchTarget)
	_, gradient := asked.WithMiniBatch(rng).Gradient(mcmc.Choose(proposed, s.Auxiliary["proposal"], s.Phi))
	h := graph.BroadcastToShape(tuning.Step(s.Phi, k.StepSize), s.Phi.Shape())
	push := graph.MulScalar(graph.Mul(h, tuning.Scaled(gradient)), 0.5)

	z := rng.Named("proposal").Normal(s.Phi.DType(), s.Phi.Shape().Dimensions...)
	momentum := graph.Add(z, push)
	proposal := graph.Add(s.Phi, graph.Mul(h, tuning.Scaled(momentum)))

	back := graph.Add(s.Auxiliary["momentum"], push)
	kinetic := graph.Sub(s.Auxiliary["kinetic"], mcmc.Kinetic(back))
	judged, info := pbnn.Judge(rng, s, s.Auxiliary["proposal"], kinetic, asked, k.Estimate, k.Rule)

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

// answered is the mini-batch target of one move, made of the shards' answers and the prior: the differences of the
// log-likelihood, [J, M], and its gradients at the places that shards were asked about, [J, D], nil for a random walk.
type answered struct {
	bound             *bayes.BoundModel
	answers, gradient *graph.Node
}

var _ density.MiniBatchTarget = answered{}

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

// Gradient implements density.Target, at the places that shards were asked about; the log-density is NaN.
func (t answered) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	logDensity = t.LogDensity(phi)
	if t.gradient == nil {
		return logDensity, graph.MulScalar(graph.OnesLike(phi), math.NaN())
	}
	return logDensity, graph.Add(t.gradient, graph.Gradient(graph.ReduceAllSum(t.bound.LogPrior(phi)), phi)[0])
}

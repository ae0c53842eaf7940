package density

import (
	"gobnn/bayes/compute/random"

	"github.com/gomlx/gomlx/core/graph"
)

// Target is an unnormalised log-density of each particle, which does not depend on the other particles. Its methods
// build graph, and panic as GoMLX does.
type Target interface {
	// LogDensity is [J] for phi, [J, D]. Values that are not finite count as -Inf.
	LogDensity(phi *graph.Node) *graph.Node
	// Gradient is LogDensity, [J], and its gradient with respect to phi, [J, D].
	Gradient(phi *graph.Node) (logDensity, gradient *graph.Node)
}

// MiniBatchTarget is a Target that can be estimated from mini-batches, random subsets of the rows. A kernel checks
// whether its target is one, and draws mini-batches for each move: by WithMiniBatch if it follows a gradient, by
// Differences if it compares two points. Only kernels that carry nothing from move to move may use one, since carried
// values would belong to other mini-batches.
type MiniBatchTarget interface {
	Target // on all rows, or NaN if that is unknown
	// WithMiniBatch is the target estimated from mini-batches drawn by the stream: the same ones at every point.
	WithMiniBatch(rng random.Stream) Target
	// Differences are M unbiased estimates of log p(to_j) - log p(from_j), [J, M], for from and to, [J, D]. Each is from a
	// mini-batch of its own, drawn by the stream, the same for all particles and both points. Variance, [J], is the
	// variance of one estimate given the points, estimated within the mini-batches, and degrees are the degrees of freedom
	// of that estimate; nil and 0 if unknown. Values that are not finite are returned as they are.
	Differences(rng random.Stream, from, to *graph.Node) (estimates, variance *graph.Node, degrees float64)
}

// ByMiniBatch is a move's estimate of a target: by mini-batches drawn by the stream if it is a MiniBatchTarget, else
// the target itself. Kernels for noisy gradients evaluate it instead of their target.
func ByMiniBatch(rng random.Stream, target Target) Target {
	if batches, ok := target.(MiniBatchTarget); ok {
		return batches.WithMiniBatch(rng.Named("target"))
	}
	return target
}

// Func is a Target given by its log-density alone, [J, D] to [J]: the gradient is taken in reverse mode.
type Func func(phi *graph.Node) *graph.Node

// LogDensity implements Target.
func (f Func) LogDensity(phi *graph.Node) *graph.Node { return f(phi) }

// Gradient implements Target.
func (f Func) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	logDensity = f(phi)
	return logDensity, graph.Gradient(graph.ReduceAllSum(logDensity), phi)[0]
}

package target

import (
	"gobnn/bayes"
	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
)

// activationCopies is how many tensors of a layer's size a chunk holds at once, forward and backward.
const activationCopies = 4

// longestFused is the longest sum of products, in layers or over a batch's rows, for which particles are evaluated in blocks of several: beyond it,
// matrix products are as fast.
const longestFused = 256

// NewPlan plans the evaluation of particles, with gradients, on batches of the given rows; chunk > 0 is taken as it is. Where each particle multiplies large
// matrices of its own, chunks run side by side, since each of these products keeps to one processor.
func NewPlan(bound *bayes.Bound, dtype compute.DType, particles, rows, chunk int) (compute.Plan, error) {
	bytes := int64(activationCopies*bound.SuffixWidth()*rows) * int64(dtype.Size())
	if chunk == 0 && bound.LongestOwnSum(rows) > longestFused {
		return compute.NewParallelPlan(particles, bytes)
	}
	return compute.NewPlan(particles, bytes, chunk)
}

// block is how many particles lie side by side in the evaluation of a chunk (nn.Block).
func (l Likelihood) block(g *graph.Graph, particles, rows int) int {
	if longest := l.Model.LongestOwnSum(rows); longest == 0 || longest > longestFused {
		return 1
	}
	return compute.Vector(g.Backend(), particles)
}

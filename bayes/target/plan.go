package target

import (
	"gobnn/bayes"
	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
)

// How many tensors of a layer's size a chunk holds at once, forward and backward, and forward alone.
const (
	activationCopies = 4
	forwardCopies    = 2
)

// Particles whose own matrices are at most so large, on batches of at most so many rows, are evaluated in blocks of
// several (nn.Block). Measured with 104 particles, value and gradient: networks 8-50-20-5-1 take three quarters of the
// time in blocks at 64 and 185 rows, and as long at 256; 8-50-50-1 takes longer in blocks at 64 rows and more. Of
// narrow networks the products of one particle are hardly work at all: with 500 particles at 506 rows, 8-4-4-1 takes
// two fifths of the time in blocks, and 8-2-2-2-2-1 a third; 8-8-1 takes a tenth longer, as do all at 4000 rows.
const (
	blockMatrix, blockRows   = 1500, 200
	narrowMatrix, narrowRows = 60, 512
)

// inBlocks says whether blocks are worth while.
func inBlocks(bound *bayes.BoundModel, rows int) bool {
	matrix := bound.LargestOwnMatrix()
	return matrix > 0 && (matrix <= blockMatrix && rows <= blockRows || matrix <= narrowMatrix && rows <= narrowRows)
}

// Work is what is to be evaluated at once.
type Workload struct {
	Particles, Rows int
	Forward         bool // no gradients
	Devices         int  // that share the particles; 0: one
	Chunk           int  // particles evaluated at once, on one device; 0: chosen
}

// NewPlan plans the evaluation of particles on batches of rows. Where each particle multiplies large matrices of its
// own, chunks run side by side, since each of these products keeps to one processor; several devices are side by side
// already.
func NewPlan(bound *bayes.BoundModel, dtype compute.DType, work Workload) (compute.Plan, error) {
	copies := activationCopies
	if work.Forward {
		copies = forwardCopies
	}
	bytes := int64(copies*bound.SuffixWidth()*work.Rows) * int64(dtype.Size())
	switch {
	case work.Devices > 1:
		return compute.NewSharedPlan(work.Particles, work.Devices, bytes), nil
	case work.Chunk == 0 && bound.LargestOwnMatrix() > 0 && !inBlocks(bound, work.Rows):
		return compute.NewParallelPlan(work.Particles, bytes)
	}
	return compute.NewPlan(work.Particles, bytes, work.Chunk)
}

// block is how many particles lie side by side in the evaluation of a chunk (nn.Block). Blocks do not reach from one
// device to the next.
func (l Likelihood) block(g *graph.Graph, particles, rows int) int {
	if !inBlocks(l.Model, rows) {
		return 1
	}
	devices := max(1, l.Plan.Devices)
	block := compute.SIMDWidth(g.Backend(), particles/devices)
	if devices > 1 && particles/devices%block != 0 {
		return 1
	}
	return block
}

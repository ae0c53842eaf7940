package density

import (
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	backends "github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
)

// The number of tensors of a layer's size that a chunk holds at once, forward and backward, and forward alone.
const (
	activationCopies = 4
	forwardCopies    = 2
)

// partBytes is the most that the activations of one particle, or of the layers before the first stochastic one, may
// take: of more, the rows are cut into parts, which are evaluated one after another, but for Reweight. A ResNet20 on
// 128 pictures of 32 x 32 is not cut. An accelerator cuts only what does not fit its memory.
var partBytes int64 = 2 << 30 // tests set it

// partsOf is the number of parts of the rows for activations of this size.
func partsOf(bytes int64, rows int) int {
	return int(min((bytes+partBytes-1)/partBytes, int64(rows)))
}

// forwardPart is what the activations of one particle take in a part of a forward pass whose rows are cut, of
// rowsOfPart rows at least: a chunk then has several particles, for which the patches that the first layer multiplies
// are made once. With one particle a chunk LeNet-5 takes 1.5 times as long.
const (
	forwardPart = 8 << 20
	rowsOfPart  = 16
)

// The largest matrices of a particle, and the most rows of a batch, for which particles are evaluated in blocks of
// several (nn.Block). Measured: blocks are faster for networks such as 8-50-20-5-1 up to about 200 rows. For narrower
// ones, such as 8-4-4-1, they are faster up to 500, since the products of one particle are then too small for matrix
// products. Larger ones, such as 8-50-50-1, are slower in blocks. In blocks the first layer's product with the rows
// that all particles share is no matrix product. Where this product is most of the work, as in 33-5-1, blocks take ten
// times as long.
const (
	blockMatrix, blockRows   = 1500, 200
	narrowMatrix, narrowRows = 60, 512
)

// inBlocks says whether blocks are faster. They are not for convolutions, whose weights have more axes than a matrix.
func inBlocks(bound *bayes.BoundModel, rows int) bool {
	if slices.ContainsFunc(bound.Slots, func(s bayes.Slot) bool { return len(s.Shape) > 2 }) {
		return false
	}
	matrix := largestOwnMatrix(bound)
	if first := firstMatrix(bound); first > max(2*matrix, narrowMatrix) {
		return false
	}
	return matrix > 0 && (matrix <= blockMatrix && rows <= blockRows || matrix <= narrowMatrix && rows <= narrowRows)
}

// largestOwnMatrix is the number of weights in the largest matrix that each particle multiplies with activations of its
// own, if every weight matrix is stochastic; else 0.
func largestOwnMatrix(bound *bayes.BoundModel) int {
	largest, first := 0, true
	for _, slot := range bound.Slots {
		switch {
		case slot.Kind != nn.Weights:
		case !slot.Stochastic:
			return 0
		case first: // its input is shared by all particles
			first = false
		default:
			largest = max(largest, slot.Size())
		}
	}
	return largest
}

// firstMatrix is the number of weights in the matrix of the first layer, whose input all particles share.
func firstMatrix(bound *bayes.BoundModel) int {
	for _, slot := range bound.Slots {
		if slot.Kind == nn.Weights {
			return slot.Size()
		}
	}
	return 0
}

// Workload is the size of an evaluation.
type Workload struct {
	Particles, Rows int
	Forward         bool // no gradients
	Devices         int  // that share the particles; 0: one
	Chunk           int  // particles evaluated at once, on one device; 0: chosen
}

// NewPlan plans the evaluation of particles on batches of rows. If each particle multiplies large matrices of its own,
// chunks run concurrently, since each of these products uses one processor only; several devices run concurrently
// anyway. If one particle's activations would take more than 2 GiB, the rows are cut into parts, unless several
// devices share the particles.
func NewPlan(
	bound *bayes.BoundModel, dtype compute.DType, work Workload,
) compute.Plan {
	copies := activationCopies
	if work.Forward {
		copies = forwardCopies
	}
	bytes := int64(copies*bound.SuffixWidth()*work.Rows) * int64(dtype.Size())
	if work.Devices > 1 {
		return compute.Plan{Particles: work.Particles, Chunk: work.Particles, Devices: work.Devices,
			Bytes: int64(work.Particles/work.Devices) * bytes}
	}
	parts := partsOf(bytes, work.Rows)
	if parts > 1 {
		if work.Forward {
			parts = max(parts, min(int(bytes/forwardPart), work.Rows/rowsOfPart))
		}
		bytes = (bytes + int64(parts) - 1) / int64(parts)
	}
	plan := compute.NewPlan(work.Particles, bytes, work.Chunk)
	if work.Chunk == 0 && largestOwnMatrix(bound) > 0 && !inBlocks(bound, work.Rows) {
		plan = compute.NewParallelPlan(work.Particles, bytes)
	}
	plan.Parts = max(parts, 1)
	return plan
}

// block is the number of particles in a block of a chunk's evaluation (nn.Block). Blocks do not extend over devices.
func (l Likelihood) block(g *graph.Graph, particles, rows int) int {
	if !inBlocks(l.Model, rows) {
		return 1
	}
	devices := max(1, l.Plan.Devices)
	block := simdWidth(g.Backend(), particles/devices)
	if devices > 1 && particles/devices%block != 0 {
		return 1
	}
	return block
}

// simdWidth is the number of particles in a block (nn.Block), 8 or 4, such that blocks fill a processor's SIMD
// registers without much padding. It is 1, no blocks, for fewer than 16 particles, whose matrix products are as fast,
// and on other backends than XLA on a CPU.
func simdWidth(backend backends.Backend, particles int) int {
	if particles < 16 || !compute.OnCPU(backend) {
		return 1
	}
	for _, width := range []int{8, 4} {
		if padded := (particles + width - 1) / width * width; padded <= particles+particles/4 {
			return width
		}
	}
	return 1
}

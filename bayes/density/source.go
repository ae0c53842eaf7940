package density

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/limits"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// SourceSettings of NewSourceProblem and NewSourceBatches. All are needed.
type SourceSettings struct {
	BatchSize int           // n, rows of a mini-batch
	BlockRows int           // rows that are read at once, from BatchSize to all
	DType     compute.DType // of its tensors
	Seed      uint64        // of the order of the rows
}

// NewSourceProblem is NewBatchProblem for standardised rows that memory does not hold: one block of rows is read at a
// time. No parameters may be shared. Each move estimates the posterior from a mini-batch of one block, by log p(phi) +
// B log p(y_batch | phi; psi) with B the number of mini-batches of an epoch, in which each row counts once. An epoch
// goes through all blocks, and through the rows of each, in a new random order. all are the blocks of the source, for
// what is evaluated on all rows. An error while reading stops a run, which a checkpoint resumes.
func NewSourceProblem(
	bound *bayes.BoundModel, source dataset.Source, s SourceSettings,
) (byBatches Problem, all *Blocks) {
	r, n := NewSourceBatches(source, s), source.Rows()
	plan := NewPlan(bound, s.DType, Workload{Particles: 1, Rows: s.BatchSize})
	inputs := func(x, y *tensors.Tensor, count int) []any {
		return []any{x, y, compute.Floats(s.DType, []float64{float64(count)})}
	}
	likelihood := Likelihood{Model: bound, Plan: plan}
	byBatches = Problem{
		Name: named(bound, fmt.Sprintf("posterior from the mini-batches, of %d of %d rows of a %T, seed %d, blocks of %d",
			s.BatchSize, n, source, s.Seed, s.BlockRows)), Dim: bound.D,
		Target: func(_ compute.Nodes, inputs []*graph.Node) Target {
			return At(EqualBatches(likelihood, n, r.PerEpoch()), nil, Batch{X: inputs[0], Y: inputs[1], Count: inputs[2]})
		},
		HostInputs: &HostInputs{
			Blank: inputs(r.batch(nil)),
			Inputs: func(ctx context.Context, move int, _ map[string]*tensors.Tensor) ([]any, error) {
				x, y, count, err := r.At(ctx, move)
				return inputs(x, y, count), err
			},
			OfMove: true,
		},
		Initial: func(rng random.Stream, dtype compute.DType, chains int) *graph.Node {
			return bound.SamplePrior(rng, dtype, chains)
		},
		Rows: n, BatchShare: float64(s.BatchSize) / float64(n),
	}
	all = NewBlocks(bound, n, s.BlockRows, func(from, count int) (map[string]*tensors.Tensor, error) {
		x, y, err := r.read(context.Background(), from, count)
		if err != nil {
			return nil, err
		}
		pad := s.BlockRows - count
		x = append(x, make([]float64, pad*source.Dims())...)
		y = append(y, make([]float64, pad*source.Targets())...)
		return map[string]*tensors.Tensor{
			"x": compute.Floats(s.DType, x, s.BlockRows, source.Dims()),
			"y": compute.Floats(s.DType, y, r.targetDims(s.BlockRows)...),
		}, nil
	})
	return byBatches, all
}

// SourceBatches makes mini-batches of a source from the block of rows that it holds; it reads the next block when all
// rows of this one have been used.
type SourceBatches struct {
	SourceSettings
	source dataset.Source

	epoch  int
	blocks []int // their order in the epoch
	block  int   // the block that is held, as its place in that order; -1: none
	order  []int // of the rows of the block
	x, y   []float64
}

// NewSourceBatches begins before the first block.
func NewSourceBatches(source dataset.Source, s SourceSettings) *SourceBatches {
	return &SourceBatches{SourceSettings: s, source: source, epoch: -1, block: -1}
}

// read reads rows.
func (r *SourceBatches) read(ctx context.Context, from, count int) (x, y []float64, err error) {
	x, y = make([]float64, count*r.source.Dims()), make([]float64, count*r.source.Targets())
	if err := r.source.Read(ctx, from, x, y); err != nil {
		return nil, nil, fmt.Errorf("density: rows %d to %d of the source: %w", from, from+count-1, err)
	}
	largest, what := math.MaxFloat64, "finite"
	if r.DType == compute.Float32 {
		largest = limits.Float32
		what = fmt.Sprintf("finite and at most %g, beyond which squares overflow float32", largest)
	}
	for _, values := range [][]float64{x, y} {
		if i := slices.IndexFunc(values, func(v float64) bool { return !(math.Abs(v) <= largest) }); i >= 0 {
			return nil, nil, fmt.Errorf("density: row %d of the source holds %v: all numbers must be %s",
				from+i*count/len(values), values[i], what)
		}
	}
	return x, y, nil
}

// targetDims returns the dimensions of y for a number of rows: [rows] or [rows, K].
func (r *SourceBatches) targetDims(rows int) []int {
	if k := r.source.Targets(); k > 1 {
		return []int{rows, k}
	}
	return []int{rows}
}

// batch is a mini-batch of some rows of the block that is held, and how many they are.
func (r *SourceBatches) batch(these []int) (x, y *tensors.Tensor, count int) {
	d, k := r.source.Dims(), r.source.Targets()
	flatX, flatY := make([]float64, r.BatchSize*d), make([]float64, r.BatchSize*k)
	for i, row := range these {
		copy(flatX[i*d:], r.x[row*d:(row+1)*d])
		copy(flatY[i*k:], r.y[row*k:(row+1)*k])
	}
	return compute.Floats(r.DType, flatX, r.BatchSize, d),
		compute.Floats(r.DType, flatY, r.targetDims(r.BatchSize)...), len(these)
}

// counts returns the number of mini-batches of a full block, of full blocks, and of mini-batches of the last block if
// that has fewer rows.
func (r *SourceBatches) counts() (each, full, last int) {
	rows, size := r.source.Rows(), r.BlockRows
	return (size + r.BatchSize - 1) / r.BatchSize, rows / size, (rows%size + r.BatchSize - 1) / r.BatchSize
}

// PerEpoch is the number of mini-batches of an epoch.
func (r *SourceBatches) PerEpoch() int {
	each, full, last := r.counts()
	return full*each + last
}

// At is the mini-batch of a step, counted from 0, x, [B, d], and y, [B] or [B, K], of whose rows the first count are
// real: a function of the seed and the step alone. A block has as many
// mini-batches as its rows divided by BatchSize, rounded up; the last block may have fewer rows.
func (r *SourceBatches) At(ctx context.Context, step int) (x, y *tensors.Tensor, count int, err error) {
	rows, size := r.source.Rows(), r.BlockRows
	each, full, last := r.counts()
	epoch, at := step/r.PerEpoch(), step%r.PerEpoch()
	if epoch != r.epoch {
		r.blocks = rand.New(rand.NewPCG(r.Seed, uint64(epoch))).Perm((rows + size - 1) / size)
		r.epoch, r.block = epoch, -1
	}
	place := 0
	for ; ; place++ { // find the block that the mini-batch is from
		of := each
		if r.blocks[place] == full {
			of = last
		}
		if at < of {
			break
		}
		at -= of
	}
	number := r.blocks[place]
	held := min(size, rows-number*size)
	if place != r.block {
		if r.x, r.y, err = r.read(ctx, number*size, held); err != nil {
			return nil, nil, 0, err
		}
		r.order = rand.New(rand.NewPCG(r.Seed^0x626c6f636b, uint64(epoch)<<32|uint64(number))).Perm(held)
		r.block = place
	}
	x, y, count = r.batch(r.order[at*r.BatchSize : min((at+1)*r.BatchSize, held)])
	return x, y, count, nil
}

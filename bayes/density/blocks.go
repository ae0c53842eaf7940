package density

import (
	"gobnn/bayes"
	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Blocks divides the rows behind a target into blocks, which are evaluated one after another and summed: so memory need
// hold only one block of a large data set, and the activations of a block stay in a processor's cache.
type Blocks struct {
	count int
	// data returns a block's tensors for target. Names and shapes are the same for all blocks, and the tensors of a block
	// are the same at each call.
	data func(block int) (map[string]*tensors.Tensor, error)
	// target builds the log-density of one block. The sum over all blocks is the problem's log-density: the prior is
	// divided among the blocks.
	target func(data compute.Nodes) Target
}

// rowsOfBlock is the default number of rows in a block. placesAtOnce is the number of places for whose activations
// memory is planned: see BenchmarkHessian.
const (
	rowsOfBlock  = 8192
	placesAtOnce = 128
)

// NewBlocks divides N rows into blocks of the given size. read returns the tensors of count rows from the given one on:
// "y", "x" or "features" and, if parameters are shared, "psi", with padding to size.
func NewBlocks(
	bound *bayes.BoundModel, rows, size int, read func(from, count int) (map[string]*tensors.Tensor, error),
) *Blocks {
	return &Blocks{
		count: (rows + size - 1) / size,
		data: func(block int) (map[string]*tensors.Tensor, error) {
			from := block * size
			count := min(size, rows-from)
			data, err := read(from, count)
			if err != nil {
				return nil, err
			}
			data["count"] = compute.Floats(data["y"].DType(), []float64{float64(count)}, 1)
			return data, nil
		},
		target: func(data compute.Nodes) Target {
			plan, err := NewPlan(bound, data["y"].DType(), Workload{Particles: placesAtOnce, Rows: size})
			if err != nil {
				panic(err)
			}
			count := graph.Reshape(data["count"])
			batch := Batch{X: data["x"], Features: data["features"], Y: data["y"], Count: count}
			estimate := MiniBatch(Likelihood{Model: bound, Plan: plan}, rows)
			return ofBlock{ofBatch{estimate, data["psi"], batch}, graph.DivScalar(count, float64(rows))}
		},
	}
}

// ofBlock is the contribution of n of N rows to the log-posterior: (n/N) log p(phi) + log p(y_block | phi; psi). It
// equals n/N times the mini-batch estimate of the log-posterior from these rows.
type ofBlock struct {
	estimate ofBatch
	share    *graph.Node
}

// LogPrior is (n/N) log p(phi), [J]: summed over all blocks it is the log-prior.
func (b ofBlock) LogPrior(phi *graph.Node) *graph.Node {
	return graph.Mul(b.estimate.posterior.Model.LogPrior(phi), b.share)
}

// LogLikelihood is log p(y_block | phi; psi), [J].
func (b ofBlock) LogLikelihood(phi *graph.Node) *graph.Node {
	return b.estimate.posterior.LogLikelihood(phi, b.estimate.psi, b.estimate.batch)
}

// LogDensity implements Target.
func (b ofBlock) LogDensity(phi *graph.Node) *graph.Node {
	return graph.Mul(b.estimate.LogDensity(phi), b.share)
}

// Gradient implements Target.
func (b ofBlock) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	logDensity, gradient = b.estimate.Gradient(phi)
	return graph.Mul(logDensity, b.share), graph.Mul(gradient, b.share)
}

package fbnn

import (
	"cmp"
	"context"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// evaluator evaluates functions of theta, given a problem's data and target, at many values of theta, which are called
// places: of a Source on one block of rows after the other, in float64.
type evaluator struct {
	*density.Evaluator
	inBlocks bool
}

// atOnce is the number of places in one evaluation.
const atOnce = 50

// newEvaluator puts a problem's data on the device.
func newEvaluator(job *job, problem density.Problem) (*evaluator, error) {
	var blocks *density.Blocks
	dtype := job.DType
	if problem.HostInputs != nil {
		blocks, dtype = job.blocks, compute.Float64
	}
	e, err := density.NewEvaluator("fbnn", job.Engine, problem, blocks, dtype, blocks == nil)
	if err != nil {
		return nil, err
	}
	return &evaluator{e, blocks != nil}, nil
}

// drawnPlaces are the draws of chains, chain after chain. Only one row at a time is converted to float64.
type drawnPlaces struct{ *mcmc.Draws }

func (p drawnPlaces) Dims() (n, d int) { return p.Chains * p.PerChain, p.Dim }

func (p drawnPlaces) RawRowView(i int) []float64 { return p.At(i/p.PerChain, i%p.PerChain) }

// at evaluates the function f with the given name at each row of theta, [n, D]: f takes [c, D] to [c, width], and the
// results are [n, width].
func (e *evaluator) at(
	ctx context.Context, name string, theta density.Points, f func(target density.Target, theta *Node) *Node,
) (*mat.Dense, error) {
	rows, _ := theta.Dims()
	size := atOnce
	if e.inBlocks { // compiling for fewer places takes less time than evaluating 50 places in all blocks
		size = min(atOnce, rows)
	}
	out, err := e.At(ctx, name, theta, size, func(target density.Target, _ compute.Nodes, theta *Node) *Node {
		return f(target, theta)
	})
	if err != nil {
		return nil, err
	}
	return mat.NewDense(rows, len(out)/rows, out), nil
}

// posterior is a target whose prior and likelihood are known separately: the network's and the emulated one.
type posterior interface {
	density.Target
	LogPrior(phi *graph.Node) *graph.Node
	LogLikelihood(phi *graph.Node) *graph.Node
}

// potential is Phi = -log p(y | theta) at each row of theta.
func (e *evaluator) potential(ctx context.Context, theta density.Points) ([]float64, error) {
	out, err := e.at(ctx, "log-likelihood", theta, func(target density.Target, theta *Node) *Node {
		return Neg(target.(posterior).LogLikelihood(theta))
	})
	if err != nil {
		return nil, err
	}
	return out.RawMatrix().Data, nil
}

// logDensity returns the posterior's log-density at each row of theta.
func (e *evaluator) logDensity(ctx context.Context, theta *mat.Dense) ([]float64, error) {
	out, err := e.at(ctx, "log-posterior", theta, func(target density.Target, theta *Node) *Node {
		return target.LogDensity(theta)
	})
	if err != nil {
		return nil, err
	}
	return out.RawMatrix().Data, nil
}

// gradient returns the gradient of the log-likelihood at each row of theta, [n, D].
func (e *evaluator) gradient(ctx context.Context, theta *mat.Dense) (*mat.Dense, error) {
	return e.at(ctx, "gradient of the log-likelihood", theta, func(target density.Target, theta *Node) *Node {
		_, gradient := target.Gradient(theta) // the target's own gradient, which evaluates rows and particles in parts
		_, prior := density.Func(target.(posterior).LogPrior).Gradient(theta)
		return Sub(gradient, prior)
	})
}

// matrixOf copies a tensor, [n, D].
func matrixOf(t *tensors.Tensor) (*mat.Dense, error) {
	flat, err := compute.Float64s(t)
	if err != nil {
		return nil, fmt.Errorf("fbnn: %w", err)
	}
	return mat.NewDense(t.Shape().Dim(0), cmp.Or(t.Shape().Dim(1), 1), flat), nil
}

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
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// evaluator evaluates functions of theta, given a problem's data and target, at many values of theta, which are called
// places. If the rows do not fit into memory, it evaluates the function on one block of rows after the other, in
// float64, and adds up: the functions are sums over rows, and each block has its share of the prior's part.
type evaluator struct {
	job      *job
	dtype    compute.DType
	atOnce   int
	state    *compute.State // of the data in memory; nil with blocks
	blocks   *density.Blocks
	programs map[string]*compute.Program
	target   func(nodes compute.Nodes) density.Target
}

// atOnce is the number of places in one evaluation.
const atOnce = 50

// newEvaluator puts a problem's data on the device.
func newEvaluator(job *job, problem density.Problem) (*evaluator, error) {
	e := &evaluator{
		job: job, dtype: job.DType, atOnce: atOnce, programs: map[string]*compute.Program{},
		target: func(nodes compute.Nodes) density.Target { return problem.Target(nodes, nil) },
	}
	if problem.HostInputs != nil {
		e.dtype, e.blocks, e.target = compute.Float64, job.blocks, job.blocks.Target
		return e, nil
	}
	e.state = compute.NewState(job.Engine)
	for name, t := range problem.Data {
		local, err := t.LocalClone() // the state owns what it holds, and frees it
		if err != nil {
			e.Close()
			return nil, fmt.Errorf("fbnn: data %q: %w", name, err)
		}
		e.state.Set(name, local)
	}
	return e, nil
}

// Close frees programs and data.
func (e *evaluator) Close() {
	for _, p := range e.programs {
		p.Close()
	}
	if e.state != nil {
		e.state.Close()
	}
}

// places are rows of theta, [n, D]: a *mat.Dense, or draws.
type places interface {
	Dims() (n, d int)
	RawRowView(i int) []float64
}

// drawnPlaces are the draws of chains, chain after chain. Only one row at a time is converted to float64.
type drawnPlaces struct{ *mcmc.Draws }

func (p drawnPlaces) Dims() (n, d int) { return p.Chains * p.PerChain, p.Dim }

func (p drawnPlaces) RawRowView(i int) []float64 { return p.At(i/p.PerChain, i%p.PerChain) }

// at evaluates the function f with the given name at each row of theta, [n, D]: f takes [c, D] to [c, width], and the
// results are [n, width].
func (e *evaluator) at(
	ctx context.Context, name string, theta places, f func(nodes compute.Nodes, theta *graph.Node) *graph.Node,
) (*mat.Dense, error) {
	rows, _ := theta.Dims()
	if e.blocks == nil {
		out, err := e.on(ctx, e.state, name, theta, f)
		if err != nil {
			return nil, err
		}
		return mat.NewDense(rows, len(out)/rows, out), nil
	}
	var sum []float64
	read := e.job.Reading(name)
	for block := range e.blocks.Count {
		out, err := e.onBlock(ctx, block, name, theta, f)
		switch {
		case err != nil:
			return nil, err
		case sum == nil:
			sum = out
		default:
			floats.Add(sum, out)
		}
		read((block + 1) * e.job.Rows() / e.blocks.Count)
	}
	return mat.NewDense(rows, len(sum)/rows, sum), nil
}

// onBlock evaluates the function on one block.
func (e *evaluator) onBlock(
	ctx context.Context, block int, name string, theta places,
	f func(nodes compute.Nodes, theta *graph.Node) *graph.Node,
) ([]float64, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("fbnn: %s: %w", name, err)
	}
	data, err := e.blocks.Data(block)
	if err != nil {
		return nil, fmt.Errorf("fbnn: %s: %w", name, err)
	}
	state := compute.NewState(e.job.Engine)
	defer state.Close()
	for name, t := range data {
		state.Set(name, t)
	}
	return e.on(ctx, state, name, theta, f)
}

// on evaluates the function on the rows in a state.
func (e *evaluator) on(
	ctx context.Context, state *compute.State, name string, theta places,
	f func(nodes compute.Nodes, theta *graph.Node) *graph.Node,
) ([]float64, error) {
	program := e.programs[name]
	if program == nil {
		var err error
		program, err = compute.NewProgram(e.job.Engine, "fbnn "+name, state.Names(), nil,
			func(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
				out := f(nodes, inputs[0])
				return nil, Reshape(out, out.Shape().Size())
			})
		if err != nil {
			return nil, fmt.Errorf("fbnn: %w", err)
		}
		e.programs[name] = program
	}
	rows, d := theta.Dims()
	size := e.atOnce
	if e.blocks != nil { // compiling for fewer places takes less time than evaluating 50 places in all blocks
		size = min(size, rows)
	}
	var out []float64
	part := make([]float64, size*d)
	for from := 0; from < rows; from += size {
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("fbnn: %s: %w", name, err)
		}
		count := min(size, rows-from)
		for i := range size { // the last part is filled up with the last row
			copy(part[i*d:], theta.RawRowView(min(from+i, rows-1)))
		}
		values, err := program.Run(state, compute.Floats(e.dtype, part, size, d))
		if err != nil {
			return nil, fmt.Errorf("fbnn: %s: %w", name, err)
		}
		out = append(out, values[:count*len(values)/size]...)
	}
	return out, nil
}

// posterior is a target whose prior and likelihood are known separately: the network's and the emulated one.
type posterior interface {
	density.Target
	LogPrior(phi *graph.Node) *graph.Node
	LogLikelihood(phi *graph.Node) *graph.Node
}

// potential is Phi = -log p(y | theta) at each row of theta.
func (e *evaluator) potential(ctx context.Context, theta places) ([]float64, error) {
	out, err := e.at(ctx, "log-likelihood", theta, func(nodes compute.Nodes, theta *graph.Node) *graph.Node {
		return Neg(e.target(nodes).(posterior).LogLikelihood(theta))
	})
	if err != nil {
		return nil, err
	}
	return out.RawMatrix().Data, nil
}

// logDensity returns the posterior's log-density at each row of theta.
func (e *evaluator) logDensity(ctx context.Context, theta *mat.Dense) ([]float64, error) {
	out, err := e.at(ctx, "log-posterior", theta, func(nodes compute.Nodes, theta *graph.Node) *graph.Node {
		return e.target(nodes).LogDensity(theta)
	})
	if err != nil {
		return nil, err
	}
	return out.RawMatrix().Data, nil
}

// gradient returns the gradient of the log-likelihood at each row of theta, [n, D].
func (e *evaluator) gradient(ctx context.Context, theta *mat.Dense) (*mat.Dense, error) {
	return e.at(ctx, "gradient of the log-likelihood", theta, func(nodes compute.Nodes, theta *graph.Node) *graph.Node {
		target := e.target(nodes).(posterior)
		_, gradient := target.Gradient(theta) // the target's own gradient, which evaluates rows and particles in parts
		_, prior := density.Func(target.LogPrior).Gradient(theta)
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

package density

import (
	"context"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
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

// placesAtOnce is the number of places for whose activations memory is planned.
const placesAtOnce = 128

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
			plan := NewPlan(bound, data["y"].DType(), Workload{Particles: placesAtOnce, Rows: size})
			count := graph.Reshape(data["count"])
			batch := Batch{X: data["x"], Features: data["features"], Y: data["y"], Count: count}
			estimate := MiniBatch(Likelihood{Model: bound, Plan: plan}, rows)
			return ofBlock{ofBatch{estimate, data["psi"], batch}, graph.DivScalar(count, float64(rows))}
		},
	}
}

// Evaluator evaluates functions of phi, given a problem's rows, at many points on the host. The functions are sums over
// rows, to which each block has its share of the prior's part. Close it.
type Evaluator struct {
	owner    string // with which errors begin
	engine   *compute.Engine
	blocks   *Blocks
	dtype    compute.DType
	states   []*compute.State // of the blocks; nil if they are read at each evaluation
	programs map[string]*compute.Program
}

// NewEvaluator evaluates a problem whose rows are in memory, or if blocks is not nil these in its place, in the given
// type; data of float32 are converted if that is float64. With keep the data of all blocks stay on the device;
// otherwise one block at a time is read, at each evaluation.
func NewEvaluator(
	owner string, engine *compute.Engine, problem Problem, blocks *Blocks, dtype compute.DType, keep bool,
) (*Evaluator, error) {
	if blocks == nil {
		blocks = &Blocks{
			count:  1,
			data:   func(int) (map[string]*tensors.Tensor, error) { return problem.Data, nil },
			target: func(data compute.Nodes) Target { return problem.Target(data, nil) },
		}
	}
	e := &Evaluator{
		owner: owner, engine: engine, blocks: blocks, dtype: dtype, programs: map[string]*compute.Program{},
	}
	if !keep {
		return e, nil
	}
	for block := range blocks.count {
		state, err := e.load(block)
		if err != nil {
			e.Close()
			return nil, err
		}
		e.states = append(e.states, state)
	}
	return e, nil
}

// Close frees programs and data.
func (e *Evaluator) Close() {
	for _, p := range e.programs {
		p.Close()
	}
	for _, s := range e.states {
		s.Close()
	}
}

// State has the data of the first block, if they are kept.
func (e *Evaluator) State() *compute.State { return e.states[0] }

// load puts a block on the device.
func (e *Evaluator) load(block int) (*compute.State, error) {
	data, err := e.blocks.data(block)
	if err != nil {
		return nil, fmt.Errorf("%s: block %d of the rows: %w", e.owner, block, err)
	}
	state := compute.NewState(e.engine)
	for name, t := range data {
		own, err := e.copied(t) // the state owns what it holds, and frees it
		if err != nil {
			state.Close()
			return nil, fmt.Errorf("%s: data %q: %w", e.owner, name, err)
		}
		state.Set(name, own)
	}
	return state, nil
}

func (e *Evaluator) copied(t *tensors.Tensor) (*tensors.Tensor, error) {
	if e.dtype != compute.Float64 || t.DType() != compute.Float32 {
		return t.LocalClone()
	}
	values, err := compute.Float64s(t)
	if err != nil {
		return nil, err
	}
	return compute.Floats(compute.Float64, values, t.Shape().Dimensions...), nil
}

// Points are rows of phi, [n, D], such as a mat.Dense.
type Points interface {
	Dims() (n, d int)
	RawRowView(i int) []float64
}

// At evaluates a function at each point, `size` of them at once: it takes the target, the data and phi, [size, D], to
// [size, width], and the results are [n, width], flat. Functions of one name are the same.
func (e *Evaluator) At(
	ctx context.Context, name string, at Points, size int,
	f func(target Target, data compute.Nodes, phi *graph.Node) *graph.Node,
) (sum []float64, err error) {
	for block := range e.blocks.count {
		out, err := e.onBlock(ctx, block, name, at, size, f)
		switch {
		case err != nil:
			return nil, err
		case sum == nil:
			sum = out
		default:
			floats.Add(sum, out)
		}
	}
	return sum, nil
}

// onBlock evaluates the function on one block.
func (e *Evaluator) onBlock(
	ctx context.Context, block int, name string, at Points, size int,
	f func(target Target, data compute.Nodes, phi *graph.Node) *graph.Node,
) (out []float64, err error) {
	var state *compute.State
	if e.states != nil {
		state = e.states[block]
	} else {
		if state, err = e.load(block); err != nil {
			return nil, err
		}
		defer state.Close()
	}
	program := e.programs[name]
	if program == nil {
		program, err = compute.NewProgram(e.engine, e.owner+" "+name, state.Names(), nil,
			func(data compute.Nodes, inputs []*graph.Node) (compute.Nodes, *graph.Node) {
				out := f(e.blocks.target(data), data, inputs[0])
				return nil, graph.Reshape(out, out.Shape().Size())
			})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.owner, err)
		}
		e.programs[name] = program
	}
	rows, d := at.Dims()
	part := make([]float64, size*d)
	for from := 0; from < rows; from += size {
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", e.owner, name, err)
		}
		for i := range size { // the last part is filled up with the last row
			copy(part[i*d:], at.RawRowView(min(from+i, rows-1)))
		}
		values, err := program.Run(state, compute.Floats(e.dtype, part, size, d))
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", e.owner, name, err)
		}
		out = append(out, values[:min(size, rows-from)*len(values)/size]...)
	}
	return out, nil
}

package surrogate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
)

// places evaluates a problem's log-density and gradient at given points, in float64 whatever the chains' type, since
// searching a mode and taking differences of gradients need that precision.
type places struct {
	dim     int
	problem posterior
	engine  *compute.Engine
	blocks  density.Blocks
	states  []*compute.State // of the blocks
	program *compute.Program
	forward *compute.Program
	ctx     context.Context
}

// newPlaces puts the problem's data on the device, floats as float64, or those of its blocks.
func newPlaces(ctx context.Context, engine *compute.Engine, problem posterior) (*places, error) {
	if problem.blocks == nil && (problem.Inputs != nil || problem.HostInputs != nil) {
		return nil, errors.New("surrogate: the target takes new inputs at each move, so it has no mode: give it all rows")
	}
	p := &places{dim: problem.Dim, problem: problem, engine: engine, ctx: ctx, blocks: density.Blocks{
		Count:  1,
		Data:   func(int) (map[string]*tensors.Tensor, error) { return problem.Data, nil },
		Target: func(data compute.Nodes) density.Target { return problem.Target(data, nil) },
	}}
	if problem.blocks != nil {
		p.blocks = *problem.blocks
	}
	for i := range p.blocks.Count {
		state, err := p.load(i)
		if err != nil {
			p.Close()
			return nil, err
		}
		p.states = append(p.states, state)
	}
	if err := p.compile(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// compile prepares the programs of a block.
func (p *places) compile() error {
	first, err := p.blocks.Data(0)
	if err != nil {
		return fmt.Errorf("surrogate: block 0 of the rows: %w", err)
	}
	reads := slices.Sorted(maps.Keys(first))
	if p.program, err = compute.NewProgram(p.engine, "surrogate gradients", reads, nil,
		func(nodes compute.Nodes, inputs []*graph.Node) (compute.Nodes, *graph.Node) {
			value, gradient := p.blocks.Target(nodes).Gradient(inputs[0])
			checkShape("log-density", value, inputs[0].Shape().Dim(0))
			checkShape("gradient", gradient, inputs[0].Shape().Dimensions...)
			flat := graph.Reshape(gradient, gradient.Shape().Size())
			return nil, graph.Concatenate([]*graph.Node{value, flat}, 0)
		}); err != nil {
		return err
	}
	p.forward, err = compute.NewProgram(p.engine, "surrogate log-densities", reads, nil,
		func(nodes compute.Nodes, inputs []*graph.Node) (compute.Nodes, *graph.Node) {
			value := p.blocks.Target(nodes).LogDensity(inputs[0])
			checkShape("log-density", value, inputs[0].Shape().Dim(0))
			return nil, value
		})
	return err
}

// checkShape panics unless a target's value, at places of float64, has the given dimensions.
func checkShape(what string, value *graph.Node, dims ...int) {
	if want := shapes.Make(compute.Float64, dims...); !value.Shape().Equal(want) {
		panic(fmt.Errorf("the target's %s has shape %s: it must be %s", what, value.Shape(), want))
	}
}

// finite says whether a number is neither NaN nor infinite.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// load puts a block on the device.
func (p *places) load(block int) (*compute.State, error) {
	data, err := p.blocks.Data(block)
	if err != nil {
		return nil, fmt.Errorf("surrogate: block %d of the rows: %w", block, err)
	}
	state := compute.NewState(p.engine)
	for name, t := range data {
		wide, err := widened(t)
		if err != nil {
			state.Close()
			return nil, fmt.Errorf("surrogate: Problem.Data[%q]: %w", name, err)
		}
		state.Set(name, wide)
	}
	return state, nil
}

// widened is a copy of a tensor, in float64 if it holds floats.
func widened(t *tensors.Tensor) (*tensors.Tensor, error) {
	if t.DType() != compute.Float32 {
		return t.LocalClone()
	}
	values, err := compute.Float64s(t)
	if err != nil {
		return nil, err
	}
	return compute.Floats(compute.Float64, values, t.Shape().Dimensions...), nil
}

// Close frees the programs and the data.
func (p *places) Close() {
	for _, program := range []*compute.Program{p.program, p.forward} {
		if program != nil {
			program.Close()
		}
	}
	for _, state := range p.states {
		state.Close()
	}
}

// gradients returns the log-densities at points, [J], and their gradients, [J, D] flat.
func (p *places) gradients(points []float64) (values, gradients []float64, err error) {
	n := len(points) / p.dim
	record, err := p.run(p.program, points)
	if err != nil {
		return nil, nil, err
	}
	return record[:n], record[n:], nil
}

// logDensities returns the log-densities at points, [J].
func (p *places) logDensities(points []float64) ([]float64, error) {
	return p.run(p.forward, points)
}

// run sums up a program's records over the blocks.
func (p *places) run(program *compute.Program, points []float64) (sum []float64, err error) {
	at := compute.Floats(compute.Float64, points, len(points)/p.dim, p.dim)
	for block := range p.blocks.Count {
		if err := context.Cause(p.ctx); err != nil {
			return nil, fmt.Errorf("surrogate: cancelled before the chains begin: %w", err)
		}
		record, err := program.Run(p.states[block], at)
		switch {
		case err != nil:
			return nil, fmt.Errorf("surrogate: evaluating the target: %w", err)
		case sum == nil:
			sum = record
		default:
			floats.Add(sum, record)
		}
	}
	return sum, nil
}

package surrogate

import (
	"context"
	"errors"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
)

// places evaluates a problem's log-density and gradient at given points, in float64 whatever the chains' type, since
// searching a mode and taking differences of gradients need that precision.
type places struct {
	dim       int
	problem   posterior
	engine    *compute.Engine
	evaluator *density.Evaluator
	ctx       context.Context
}

// newPlaces puts the problem's data on the device, floats as float64, or those of its blocks.
func newPlaces(ctx context.Context, engine *compute.Engine, problem posterior) (*places, error) {
	if problem.Inputs != nil || problem.HostInputs != nil {
		return nil, errors.New("surrogate: the target takes new inputs at each move, so it has no mode: give it all rows")
	}
	e, err := density.NewEvaluator("surrogate", engine, problem.Problem, problem.blocks, compute.Float64, true)
	return &places{dim: problem.Dim, problem: problem, engine: engine, evaluator: e, ctx: ctx}, err
}

// finite says whether a number is neither NaN nor infinite.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Close frees the programs and the data.
func (p *places) Close() { p.evaluator.Close() }

// blockSize is the number of points that are evaluated in one call.
const blockSize = 128

// at evaluates a function of the target at points, [n, D] flat.
func (p *places) at(
	name string, points []float64, f func(target density.Target, phi *graph.Node) *graph.Node,
) ([]float64, error) {
	n := len(points) / p.dim
	return p.evaluator.At(p.ctx, name, mat.NewDense(n, p.dim, points), min(n, blockSize),
		func(target density.Target, _ compute.Nodes, phi *graph.Node) *graph.Node { return f(target, phi) })
}

// gradients returns the log-densities at points, [J], and their gradients, [J, D].
func (p *places) gradients(points []float64) (values []float64, gradients *mat.Dense, err error) {
	all, err := p.at("gradients", points, func(target density.Target, phi *graph.Node) *graph.Node {
		value, gradient := target.Gradient(phi)
		return graph.Concatenate([]*graph.Node{graph.ExpandAxes(value, 1), gradient}, 1)
	})
	if err != nil {
		return nil, nil, err
	}
	table := mat.NewDense(len(all)/(p.dim+1), p.dim+1, all)
	rows, _ := table.Dims()
	return mat.Col(nil, 0, table), mat.DenseCopyOf(table.Slice(0, rows, 1, p.dim+1)), nil
}

// logDensities returns the log-densities at points, [J].
func (p *places) logDensities(points []float64) ([]float64, error) {
	return p.at("log-densities", points, density.Target.LogDensity)
}

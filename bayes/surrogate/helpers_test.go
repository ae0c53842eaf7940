package surrogate

import (
	"context"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// normalAt is the density of N(mean, sd^2) in each coordinate.
func normalAt(mean, sd float64) density.Func {
	return func(phi *Node) *Node {
		return MulScalar(ReduceSum(Square(DivScalar(AddScalar(phi, -mean), sd)), 1), -.5)
	}
}

func problemOf(d int, target density.Target) posterior {
	return posterior{Problem: density.Problem{
		Dim: d, Target: func(compute.Nodes, []*Node) density.Target { return target },
	}}
}

// findMode is the mode that a search reaches from a start; nil: from where the problem has it.
func findMode(ctx context.Context, problem posterior, start []float64, engine *compute.Engine) ([]float64, error) {
	if start != nil {
		problem.Start = compute.Floats(compute.Float64, start, 1, len(start))
	}
	p, err := newPlaces(ctx, engine, problem)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.climb(3)
}

// whitenedAt are the coordinates about a mode.
func whitenedAt(ctx context.Context, problem posterior, mode []float64, engine *compute.Engine) (*whitening, error) {
	p, err := newPlaces(ctx, engine, problem)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.whiten(mode)
}

// whitenedFrom are the coordinates about the mode that a search reaches from a start.
func whitenedFrom(
	ctx context.Context, problem posterior, start []float64, engine *compute.Engine,
) (*whitening, error) {
	mode, err := findMode(ctx, problem, start, engine)
	if err != nil {
		return nil, err
	}
	return whitenedAt(ctx, problem, mode, engine)
}

// sample runs the method on a problem.
func (c Chains) sample(ctx context.Context, problem posterior, s run.Settings) (*fit.Result, *Details, error) {
	c.of = &problem
	r, err := fit.Sample(ctx, problem.Problem, c, s)
	return r, fit.Details[*Details](r), err
}

// chainsOf is what a run of chains has found.
func chainsOf(
	ctx context.Context, problem density.Problem, c mcmc.Chains, s run.Settings,
) (*mcmc.Details, error) {
	r, err := fit.Sample(ctx, problem, c, s)
	return fit.Details[*mcmc.Details](r), err
}

// near is a problem with the coordinates, and the surrogate of a part if there is one, for chains that begin around the
// mode.
func (w *whitening) near(problem posterior, c *control, chains int, dtype compute.DType) density.Problem {
	of := problem.Problem
	of.Start = w.starts(chains, dtype, 1)
	if c != nil {
		return c.on(of, dtype)
	}
	return w.on(of, dtype, nil, nil)
}

// givenRows is the posterior of a model given all rows, for four chains.
func givenRows(t testing.TB, engine *compute.Engine, bound *bayes.BoundModel, x, y *tensors.Tensor) posterior {
	t.Helper()
	problem, err := density.NewProblem(engine, bound, x, y, nil, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	return posteriorOf(engine, bound, problem, 4, 1)
}

package surrogate

import (
	"context"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	. "github.com/gomlx/gomlx/core/graph"
)

// normalAt is the density of N(mean, sd^2) in each coordinate.
func normalAt(mean, sd float64) density.Func {
	return func(phi *Node) *Node {
		return MulScalar(ReduceSum(Square(DivScalar(AddScalar(phi, -mean), sd)), 1), -.5)
	}
}

func problemOf(d int, target density.Target) Problem {
	return Problem{Problem: density.Problem{
		Dim: d, Target: func(compute.Nodes, []*Node) density.Target { return target },
	}}
}

// findMode is the mode that a search reaches from a start; nil: from where the problem has it.
func findMode(ctx context.Context, problem Problem, start []float64, engine *compute.Engine) ([]float64, error) {
	if start != nil {
		problem.Start = compute.Floats(compute.Float64, start, 1, len(start))
	}
	p, err := newPlaces(ctx, engine, problem)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.climb(3, 2000)
}

// whiteningOf are the coordinates about a mode.
func whiteningOf(ctx context.Context, problem Problem, mode []float64, engine *compute.Engine) (*Whitening, error) {
	p, err := newPlaces(ctx, engine, problem)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.whiten(mode)
}

// pilotOf is a pilot for four chains.
func pilotOf(
	t testing.TB, problem Problem, w *Whitening, seed uint64, engine *compute.Engine, shares ...float64,
) *Pilot {
	t.Helper()
	s, err := Settings{
		Settings: mcmc.Settings{Seed: seed, Engine: engine}, shares: shares,
	}.withDefaults(problem)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPilot(t.Context(), problem, w, s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

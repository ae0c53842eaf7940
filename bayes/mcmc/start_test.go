package mcmc

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"

	"github.com/gomlx/gomlx/core/graph"
)

// Chains begin at Problem.Start, another at each run of a sampler that has compiled once; a start of another shape is
// an error.
func TestStart(t *testing.T) {
	engine, dtype := computetest.Go(t), compute.Float32
	settings := Settings{Chains: 2, Draws: 1, WarmUp: NoWarmUp, Seed: 1, DType: dtype, Engine: engine}
	compiled := engine.Compiled()
	sampler := Sampler{Problem: standard(), Kernel: RandomWalkMetropolis{StepSize: 1e-6}}
	for _, at := range [][]float64{{1, 2, 3, 4}, {-1, -2, -3, -4}} {
		sampler.Problem.Start = compute.Floats(dtype, at, 2, 2)
		result, err := sampler.Sample(context.Background(), settings)
		if err != nil {
			t.Fatal(err)
		}
		for chain := range 2 {
			for i, v := range result.Draws.At(chain, 0) {
				if math.Abs(v-at[2*chain+i]) > 1e-4 {
					t.Errorf(
						"chain %d is at %v after a small step, and began at %v", chain, result.Draws.At(chain, 0), at[2*chain:2*chain+2],
					)
					break
				}
			}
		}
	}
	if n := engine.Compiled() - compiled; n != 1 {
		t.Errorf("it compiled %d times", n)
	}
	problem := standard()
	problem.Start = compute.Floats(dtype, []float64{1, 2, 3, 4}, 1, 4)
	if _, err := Sample(context.Background(), problem, sampler.Kernel, settings); err == nil ||
		!strings.Contains(err.Error(), "Problem.Start") {
		t.Errorf("error %v for a start of one chain of four numbers, want one that names Problem.Start", err)
	}
}

// Log-densities too large for float32 are said; in float64, or a little smaller, they are not.
func TestRounded(t *testing.T) {
	for _, c := range []struct {
		constant float64
		dtype    compute.DType
		says     bool
	}{
		{1e7, compute.Float32, true}, {-1e7, compute.Float32, true}, {1e5, compute.Float32, false},
		{1e7, compute.Float64, false},
	} {
		for _, kernel := range []Kernel{RandomWalkMetropolis{StepSize: 1}, HMC{StepSize: .3, Steps: 3}} {
			problem := standard()
			problem.Target = func(compute.Nodes, []*graph.Node) density.Target {
				return density.Func(func(phi *graph.Node) *graph.Node {
					return graph.AddScalar(graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5), c.constant)
				})
			}
			result, err := Sample(t.Context(), problem, kernel, Settings{
				Chains: 3, Draws: 20, WarmUp: NoWarmUp, Seed: 1, DType: c.dtype, Engine: computetest.Go(t),
			})
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Contains(strings.Join(result.Warnings, "; "), "rounded"); said != c.says {
				t.Errorf("%+v, %T: warnings %q", c, kernel, result.Warnings)
			}
		}
	}
}

// One chain of four where log-densities are rounded is named, and with it the cure.
func TestRoundedChain(t *testing.T) {
	problem := standard()
	problem.Start = compute.Floats(compute.Float32, []float64{1, 0, 2, 0, 1e5, 0, 3, 0}, 4, 2)
	result, err := Sample(t.Context(), problem, RandomWalkMetropolis{StepSize: 1e-3}, Settings{
		Chains: 4, Draws: 20, WarmUp: NoWarmUp, Seed: 1, Engine: computetest.Go(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(result.Warnings, "; ")
	for _, want := range []string{"in 1 of 4 chains (2) log-densities of about 5e+09 are rounded", "compute.Float64"} {
		if !strings.Contains(said, want) {
			t.Errorf("warnings %q do not say %q", said, want)
		}
	}

	problem.Start = compute.Floats(compute.Float32, []float64{1e5, 0, 1e6, 0}, 2, 2)
	_, err = Sample(t.Context(), problem, RandomWalkMetropolis{StepSize: 1e8}, Settings{
		Chains: 2, Draws: 20, WarmUp: NoWarmUp, Seed: 1, Engine: computetest.Go(t),
	})
	if !errors.Is(err, ErrStuck) || !strings.Contains(err.Error(), "in all chains log-densities") {
		t.Errorf("error %v, want one that says what is rounded", err)
	}
}

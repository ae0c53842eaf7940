package mcmc

import (
	"errors"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
)

// Chains begin at Problem.Start, another at each run of a sampler that has compiled once; a start of another shape is
// an error.
func TestStart(t *testing.T) {
	engine, dtype := computetest.Go(t), compute.Float32
	chains := Chains{Kernel: RandomWalkMetropolis{StepSize: 1e-6}, Chains: 2, Draws: 1, WarmUp: NoWarmUp}
	settings, problem := run.Settings{Seed: 1, DType: dtype, Engine: engine}, standard()
	compiled := engine.Compiled()
	for _, at := range [][]float64{{1, 2, 3, 4}, {-1, -2, -3, -4}} {
		problem.Start = compute.Floats(dtype, at, 2, 2)
		_, result := sample(t, problem.Keyed("start"), chains, settings)
		computetest.Near(t, "places after a small step", numbers(t, result), at, 1e-4)
	}
	if n := engine.Compiled() - compiled; n != 1 {
		t.Errorf("it compiled %d times", n)
	}
	problem.Start = compute.Floats(dtype, []float64{1, 2, 3, 4}, 1, 4)
	if _, err := fit.Sample(t.Context(), problem, chains, settings); err == nil ||
		!strings.Contains(err.Error(), "Problem.Start") {
		t.Errorf("error %v for a start of one chain of four numbers, want one that names Problem.Start", err)
	}
}

// There is a warning of log-densities too large for float32; of those in float64, or a little smaller, there is none.
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
			result, _ := sample(t, problem, Chains{Kernel: kernel, Chains: 3, Draws: 20, WarmUp: NoWarmUp},
				run.Settings{Seed: 1, DType: c.dtype, Engine: computetest.Go(t)})
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
	result, _ := sample(t, problem,
		Chains{Kernel: RandomWalkMetropolis{StepSize: 1e-3}, Chains: 4, Draws: 20, WarmUp: NoWarmUp},
		run.Settings{Seed: 1, Engine: computetest.Go(t)})
	said := strings.Join(result.Warnings, "; ")
	for _, want := range []string{"in 1 of 4 chains (2) log-densities of about 5e+09 are rounded", "compute.Float64"} {
		if !strings.Contains(said, want) {
			t.Errorf("warnings %q do not say %q", said, want)
		}
	}

	problem.Start = compute.Floats(compute.Float32, []float64{1e5, 0, 1e6, 0}, 2, 2)
	_, err := fit.Sample(t.Context(), problem,
		Chains{Kernel: RandomWalkMetropolis{StepSize: 1e8}, Chains: 2, Draws: 20, WarmUp: NoWarmUp},
		run.Settings{Seed: 1, Engine: computetest.Go(t)})
	if !errors.Is(err, ErrStuck) || !strings.Contains(err.Error(), "in all chains log-densities") {
		t.Errorf("error %v, want one that says what is rounded", err)
	}
}

package mcmc_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/internal/kerneltest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
)

// The kernel of the example passes the harness that its comment names.
func TestExampleKernel(t *testing.T) {
	o := check.Options{Particles: 500, Transitions: 50, Slow: true, Engine: computetest.Go(t)}
	check.Kernel(t, independence{StdDev: 2}, o)
}

// changed is a kernel of a user's own, as its type says.
type changed struct{ kerneltest.Changed }

// A kernel of a user's own that carries the log-density or the gradient of another place, or whose acceptance is no
// probability, is an error; the library's kernels, as a user's own embeds them, are not.
func TestKernelCarriesAnotherPlace(t *testing.T) {
	engine := computetest.Go(t)
	target := density.Func(func(phi *graph.Node) *graph.Node {
		return graph.AddScalar(graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5), -300)
	})
	accepts := func(a float64) kerneltest.Change {
		return func(_, _ *mcmc.State, info *mcmc.Info) {
			info.Acceptance = graph.AddScalar(graph.ZerosLike(info.Acceptance), a)
		}
	}
	same := kerneltest.Same
	walk, mala := mcmc.RandomWalkMetropolis{StepSize: 1}, mcmc.MALA{StepSize: .9}
	within := func(k mcmc.Kernel, change kerneltest.Change) mcmc.Kernel {
		return mcmc.DelayedAcceptance{Inner: changed{kerneltest.Changed{Kernel: k, Change: change}}}
	}
	const otherPlace = "is not that of State.Phi"
	for _, c := range []struct {
		name   string
		kernel mcmc.Kernel
		change kerneltest.Change
		says   string // empty: it is right
	}{
		{"stale", walk, kerneltest.StaleDensity, "the State.LogDensity of "},
		{"stale, MALA", mala, kerneltest.StaleDensity, otherPlace},
		{"stale gradient", mala, kerneltest.StaleGradient, "the State.Gradient of "},
		{"of the proposal", walk, kerneltest.DensityOfRejected, otherPlace},
		{"above 1", walk, accepts(1.5), "Info.Acceptance of 1.5 for chain 0"},
		{"below 0", walk, accepts(-.1), "Info.Acceptance of -0.1"},

		{"within delayed acceptance", within(walk, kerneltest.StaleDensity), nil, "Move of mcmc_test.changed must carry"},
		{"gradient within delayed acceptance", within(mala, kerneltest.StaleGradient), nil, "the State.Gradient of "},

		{"NaN", walk, accepts(math.NaN()), ""},
		{"walk", walk, same, ""}, {"MALA", mala, same, ""}, {"pCN", mcmc.PreconditionedCrankNicolson{Beta: .3}, same, ""},
		{"HMC", mcmc.HMC{StepSize: .4, Steps: 5, Jitter: .3}, same, ""}, {"NUTS", mcmc.NUTS{StepSize: .3}, same, ""},
		{"SGHMC", mcmc.SGHMC{LearningRate: .05}, same, ""},
		{"right within delayed acceptance", within(walk, same), nil, ""},
		{"MALA within delayed acceptance", within(mala, same), nil, ""},
	} {
		for _, dtype := range []compute.DType{compute.Float32, compute.Float64} {
			kernel := c.kernel
			if c.change != nil {
				kernel = changed{kerneltest.Changed{Kernel: c.kernel, Change: c.change}}
			}
			result, err := fit.Sample(t.Context(), density.Problem{
				Dim: 3, Target: func(compute.Nodes, []*graph.Node) density.Target { return onCheap{target, target} },
			}, mcmc.Chains{Kernel: kernel, Chains: 8, Draws: 40, WarmUp: 10}, run.Settings{Engine: engine, DType: dtype})
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%s, %s: %v; want %q", c.name, dtype, err, c.says)
			}
			if err == nil && strings.Contains(strings.Join(result.Warnings, "; "), "random stream") {
				t.Errorf("%s, %s: warns %q", c.name, dtype, result.Warnings)
			}
		}
	}
}

// twoSteps is a random walk whose step is the sum of two normals, from streams of the given names.
type twoSteps struct {
	mcmc.RandomWalkMetropolis
	First, Second string
}

func (k twoSteps) Move(
	rng random.Stream, s mcmc.State, target density.Target, _ mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	draw := func(name string) *graph.Node {
		return rng.Named(name).Normal(s.Phi.DType(), s.Phi.Shape().Dimensions...)
	}
	next := mcmc.State{Phi: graph.Add(s.Phi, graph.MulScalar(graph.Add(draw(k.First), draw(k.Second)), k.StepSize))}
	next.LogDensity = compute.Gate(target.LogDensity(next.Phi))
	return mcmc.MetropolisHastings(rng, s, next, graph.Sub(next.LogDensity, s.LogDensity))
}

// A kernel of a user's own that draws from one stream twice is warned of, with the stream and the places. Its draws are
// kept, since it may be meant.
func TestKernelDrawsTwice(t *testing.T) {
	target := density.Func(func(phi *graph.Node) *graph.Node {
		return graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5)
	})
	for _, c := range []struct {
		first, second string
		warns         bool
	}{{"step", "step", true}, {"first step", "second step", false}} {
		walk := mcmc.RandomWalkMetropolis{StepSize: .5}
		result, err := fit.Sample(t.Context(), density.Problem{
			Dim: 3, Target: func(compute.Nodes, []*graph.Node) density.Target { return target },
		}, mcmc.Chains{Kernel: twoSteps{walk, c.first, c.second}, Chains: 4, Draws: 20},
			run.Settings{Engine: computetest.Go(t)})
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(result.Warnings, "; ")
		if strings.Contains(said, `Move of mcmc_test.twoSteps draws more than once`) != c.warns ||
			c.warns && !strings.Contains(said, `("step": own_kernel_test.go:`) {
			t.Errorf("%q and %q: warns %q", c.first, c.second, said)
		}
	}
}

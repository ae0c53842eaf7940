package mcmc_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"

	"github.com/gomlx/gomlx/core/graph"
)

// The kernel of the example passes the harness that its comment names.
func TestExampleKernel(t *testing.T) {
	check.Kernel(t, independence{StdDev: 2}, check.Options{Particles: 500, Transitions: 50, Slow: true})
}

// changed is a kernel of a user's own that does something else than the one within it with what a move gives.
type changed struct {
	mcmc.Kernel
	change func(before, next *mcmc.State, info *mcmc.Info)
}

func (c changed) Move(
	rng random.Stream, s mcmc.State, target mcmc.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	before := s
	next, info := c.Kernel.Move(rng, s, target, tuning)
	c.change(&before, &next, &info)
	return next, info
}

func (c changed) Start(rng random.Stream, s mcmc.State) mcmc.State {
	if k, ok := c.Kernel.(mcmc.Stateful); ok {
		return k.Start(rng, s)
	}
	return s
}

func (changed) Exact() bool      { return true }
func (changed) Reversible() bool { return true }

func (changed) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

// A kernel of a user's own that carries the log-density or the gradient of another place, or whose acceptance is no
// probability, is an error; the library's kernels, as a user's own embeds them, are not.
func TestKernelCarriesAnotherPlace(t *testing.T) {
	engine := computetest.Go(t)
	target := mcmc.Density(func(phi *graph.Node) *graph.Node {
		return graph.AddScalar(graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5), -300)
	})
	type change = func(before, next *mcmc.State, info *mcmc.Info)
	same := func(_, _ *mcmc.State, _ *mcmc.Info) {}
	stale := func(before, next *mcmc.State, _ *mcmc.Info) { next.LogDensity = before.LogDensity }
	staleGradient := func(before, next *mcmc.State, _ *mcmc.Info) { next.Gradient = before.Gradient }
	ofProposal := func(_, next *mcmc.State, info *mcmc.Info) { // also where it is rejected
		next.LogDensity = graph.Sub(next.LogDensity, graph.OneMinus(info.Accepted))
	}
	accepts := func(a float64) change {
		return func(_, _ *mcmc.State, info *mcmc.Info) {
			info.Acceptance = graph.AddScalar(graph.ZerosLike(info.Acceptance), a)
		}
	}
	walk, mala := mcmc.RandomWalkMetropolis{StepSize: 1}, mcmc.MALA{StepSize: .9}
	within := func(k mcmc.Kernel, change change) mcmc.Kernel {
		return mcmc.DelayedAcceptance{Inner: changed{k, change}, Cheap: func(mcmc.Target) mcmc.Target { return target }}
	}
	const otherPlace = "is not that of State.Phi"
	for _, c := range []struct {
		name   string
		kernel mcmc.Kernel
		change change
		says   string // empty: it is right
	}{
		{"stale", walk, stale, "the State.LogDensity of "},
		{"stale, MALA", mala, stale, otherPlace},
		{"stale gradient", mala, staleGradient, "the State.Gradient of "},
		{"of the proposal", walk, ofProposal, otherPlace},
		{"above 1", walk, accepts(1.5), "Info.Acceptance of 1.5 for chain 0"},
		{"below 0", walk, accepts(-.1), "Info.Acceptance of -0.1"},

		{"within delayed acceptance", within(walk, stale), nil, "Move of mcmc_test.changed must carry"},
		{"gradient within delayed acceptance", within(mala, staleGradient), nil, "the State.Gradient of "},

		{"NaN", walk, accepts(math.NaN()), ""},
		{"walk", walk, same, ""}, {"MALA", mala, same, ""}, {"pCN", mcmc.PreconditionedCrankNicolson{Beta: .3}, same, ""},
		{"HMC", mcmc.HMC{StepSize: .4, Steps: 5, Jitter: .3}, same, ""}, {"NUTS", mcmc.NUTS{StepSize: .3}, same, ""},
		{"ULA", mcmc.ULA{StepSize: .3}, same, ""}, {"SGHMC", mcmc.SGHMC{LearningRate: .05, Resample: 4}, same, ""},
		{"right within delayed acceptance", within(walk, same), nil, ""},
		{"MALA within delayed acceptance", within(mala, same), nil, ""},
	} {
		for _, dtype := range []compute.DType{compute.Float32, compute.Float64} {
			kernel := c.kernel
			if c.change != nil {
				kernel = changed{c.kernel, c.change}
			}
			result, err := mcmc.Sample(t.Context(), mcmc.Problem{
				Dim: 3, Target: func(compute.Nodes, []*graph.Node) mcmc.Target { return target },
			}, kernel, mcmc.Settings{
				Chains: 8, Draws: 40, WarmUp: 10, Engine: engine, DType: dtype,
			})
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
	rng random.Stream, s mcmc.State, target mcmc.Target, _ mcmc.Tuning,
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
	target := mcmc.Density(func(phi *graph.Node) *graph.Node {
		return graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5)
	})
	for _, c := range []struct {
		first, second string
		warns         bool
	}{{"step", "step", true}, {"first step", "second step", false}} {
		walk := mcmc.RandomWalkMetropolis{StepSize: .5}
		result, err := mcmc.Sample(t.Context(), mcmc.Problem{
			Dim: 3, Target: func(compute.Nodes, []*graph.Node) mcmc.Target { return target },
		}, twoSteps{walk, c.first, c.second}, mcmc.Settings{Chains: 4, Draws: 20, Engine: computetest.Go(t)})
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

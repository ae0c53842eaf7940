package mcmc_test

import (
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
)

// ownTarget is a target with a gradient of its own.
type ownTarget struct {
	logDensity, inGradient, gradient func(phi *graph.Node) *graph.Node
}

func (o ownTarget) LogDensity(phi *graph.Node) *graph.Node { return o.logDensity(phi) }

func (o ownTarget) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	return o.inGradient(phi), o.gradient(phi)
}

// A target of a user's own that mixes chains, or whose Gradient is not that of its LogDensity, is refused with what is
// wrong; right ones, however steep, flat or broken, are not.
func TestTargetContradictsItself(t *testing.T) {
	square := func(phi *graph.Node) *graph.Node { return graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5) }
	plus := func(f func(phi *graph.Node) *graph.Node, v float64) func(phi *graph.Node) *graph.Node {
		return func(phi *graph.Node) *graph.Node { return graph.AddScalar(f(phi), v) }
	}
	times := func(f func(phi *graph.Node) *graph.Node, v float64) func(phi *graph.Node) *graph.Node {
		return func(phi *graph.Node) *graph.Node { return graph.MulScalar(f(phi), v) }
	}
	slopeOf := func(f func(phi *graph.Node) *graph.Node) func(phi *graph.Node) *graph.Node {
		return func(phi *graph.Node) *graph.Node { _, slope := density.Func(f).Gradient(phi); return slope }
	}
	own := func(f func(phi *graph.Node) *graph.Node) ownTarget { return ownTarget{f, f, slopeOf(f)} }
	with := func(f, slope func(phi *graph.Node) *graph.Node) ownTarget { return ownTarget{f, f, slope} }
	overChains := func(f func(x *graph.Node) *graph.Node) density.Func {
		return func(phi *graph.Node) *graph.Node { return graph.Sub(square(phi), f(phi)) }
	}
	const mixes, contradicts = "mixes particles", "contradicts itself"
	cases := []struct {
		name   string
		target density.Target
		says   string // empty: it is right
	}{
		{"mean over chains", overChains(func(phi *graph.Node) *graph.Node { return graph.ReduceAllMean(phi) }), mixes},
		{"centred", density.Func(func(phi *graph.Node) *graph.Node {
			return square(graph.Sub(phi, graph.ReduceAndKeep(phi, graph.ReduceMean, 0)))
		}), mixes},
		{"normalised over chains", density.Func(func(phi *graph.Node) *graph.Node {
			return graph.LogSoftmax(square(phi), 0)
		}), mixes},
		{"sign", with(square, times(slopeOf(square), -1)), contradicts},
		{"twice", with(square, times(slopeOf(square), 2)), contradicts},
		{"half", with(square, times(slopeOf(square), .5)), contradicts},
		{"none", with(square, times(slopeOf(square), 0)), contradicts},
		{"another constant", ownTarget{square, plus(square, 1), slopeOf(square)}, "give different log-densities"},

		{"right", own(square), ""},
		{"large constant", own(plus(square, 1e5)), ""},
		{"steep", own(times(square, 1e8)), ""},
		{"flat", own(times(square, 0)), ""},
		{"nearly flat", own(times(square, 1e-9)), ""},
		{"kinks", own(func(phi *graph.Node) *graph.Node {
			return graph.MulScalar(graph.ReduceSum(graph.Abs(phi), 1), -3)
		}), ""},
		{"bounds", own(func(phi *graph.Node) *graph.Node {
			inside := graph.LessThan(graph.ReduceMax(graph.Abs(phi), 1), graph.Scalar(phi.Graph(), phi.DType(), 2))
			return compute.Only(inside, square(phi))
		}), ""},
		{"steps", with(func(phi *graph.Node) *graph.Node { return graph.ReduceSum(graph.Floor(phi), 1) },
			graph.ZerosLike), ""},
		{"waves", own(func(phi *graph.Node) *graph.Node {
			return graph.Add(square(phi), graph.ReduceSum(graph.Sin(graph.MulScalar(phi, 20)), 1))
		}), ""},
		{"heavy tails", own(func(phi *graph.Node) *graph.Node {
			return graph.Neg(graph.ReduceSum(graph.Log1P(graph.Square(phi)), 1))
		}), ""},
		{"funnel", own(func(phi *graph.Node) *graph.Node {
			v := graph.Slice(phi, graph.AxisRange(), graph.AxisElem(0))
			x := graph.Slice(phi, graph.AxisRange(), graph.AxisRange(1))
			return graph.Add(square(v), graph.Sub(square(graph.Mul(x, graph.Exp(graph.MulScalar(v, -1.5)))),
				graph.Reshape(graph.MulScalar(v, 3), phi.Shape().Dim(0))))
		}), ""},
	}
	engine := computetest.Go(t) // XLA would compile each case
	for _, dtype := range []compute.DType{compute.Float32, compute.Float64} {
		for _, c := range cases {
			for _, chains := range []int{1, 4, 33} {
				if c.says == mixes && chains == 1 {
					continue
				}
				_, err := fit.Sample(t.Context(), density.Problem{
					Dim: 3, Target: func(compute.Nodes, []*graph.Node) density.Target { return c.target },
					Initial: func(rng random.Stream, dtype compute.DType, j int) *graph.Node {
						return graph.MulScalar(rng.Uniform(dtype, j, 3), 1.5)
					},
				}, mcmc.Chains{Kernel: mcmc.SGLD{StepSize: 1e-18}, Chains: chains, Draws: 1, WarmUp: mcmc.NoWarmUp},
					run.Settings{Engine: engine, DType: dtype, Seed: uint64(chains)})
				if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("%s, %d chains: %v; want %q", c.name, chains, err, c.says)
				}
			}
		}
	}
}

// A cheap target of a user's own that mixes chains makes delayed acceptance inexact, and is refused, within another
// delayed acceptance too. Right ones are not, however bad they are, nor is one whose
// gradient is not that of its log-density: moves on it accept or reject by the log-density.
func TestCheapTargetMixes(t *testing.T) {
	square := density.Func(func(phi *graph.Node) *graph.Node {
		return graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5)
	})
	wide := density.Func(func(phi *graph.Node) *graph.Node { return graph.MulScalar(square(phi), .5) })
	centred := density.Func(func(phi *graph.Node) *graph.Node {
		return square(graph.Sub(phi, graph.ReduceAndKeep(phi, graph.ReduceMean, 0)))
	})
	slope := func(phi *graph.Node) *graph.Node { _, slope := square.Gradient(phi); return slope }
	clipped := func(phi *graph.Node) *graph.Node { // by the norm over all particles
		of := slope(phi)
		norm := graph.Sqrt(graph.ReduceAllSum(graph.Square(of)))
		return graph.Div(of, graph.BroadcastToShape(norm, of.Shape()))
	}
	half := func(phi *graph.Node) *graph.Node { return graph.MulScalar(slope(phi), .5) }
	above := func(phi *graph.Node) *graph.Node { return graph.AddScalar(square(phi), 1) }
	engine := computetest.Go(t)
	problem := func(target density.Target) density.Problem {
		return density.Problem{Dim: 3, Target: func(compute.Nodes, []*graph.Node) density.Target { return target }}
	}
	hmc := mcmc.HMC{StepSize: .1, Steps: 2}
	once, twice := mcmc.DelayedAcceptance{Inner: hmc}, mcmc.DelayedAcceptance{Inner: mcmc.DelayedAcceptance{Inner: hmc}}
	for _, c := range []struct {
		name   string
		kernel mcmc.Kernel
		cheap  density.Target
		says   string // empty: it is right
	}{
		{"centred", once, centred, "target density.Func (a surrogate): LogDensity mixes particles"},
		{"centred, own", once, ownTarget{centred, centred, slope}, "surrogate): LogDensity mixes particles"},
		{"clipped", once, ownTarget{square, square, clipped}, "surrogate): Gradient mixes particles"},
		{"two log-densities", once, ownTarget{square, above, slope}, "surrogate) contradicts itself"},
		{"ladder, above", twice, onCheap{centred, wide}, "LogDensity mixes particles"},
		{"ladder, below", twice, onCheap{wide, centred}, "surrogate): LogDensity mixes particles"},

		{"right", once, wide, ""},
		{"its own", once, ownTarget{square, square, slope}, ""},
		{"other slope", once, ownTarget{square, square, half}, ""},
		{"ladder", twice, onCheap{wide, wide}, ""},
	} {
		_, err := fit.Sample(t.Context(), problem(onCheap{square, c.cheap}),
			mcmc.Chains{Kernel: c.kernel, Chains: 4, Draws: 2, WarmUp: mcmc.NoWarmUp},
			run.Settings{Engine: engine, DType: compute.Float64})
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v; want %q", c.name, err, c.says)
		}
	}
}

// onCheap is a target with its surrogate.
type onCheap struct {
	density.Target
	cheap density.Target
}

func (o onCheap) Surrogate() density.Target { return o.cheap }

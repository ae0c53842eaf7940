package smc_test

import (
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/graph"
)

// own is a target with methods of its own, each of which may contradict the others.
type own struct {
	smc.Posterior
	density  func(phi *graph.Node) *graph.Node        // LogDensity; nil: the right one
	tempered func(power, phi *graph.Node) *graph.Node // added to Tempered
	cheap    density.Target                           // its surrogate; nil: none
}

// onCheap is a target with its surrogate.
type onCheap struct {
	density.Target
	cheap density.Target
}

func (o onCheap) Surrogate() density.Target { return o.cheap }

func (o own) LogDensity(phi *graph.Node) *graph.Node {
	if o.density != nil {
		return o.density(phi)
	}
	return o.Posterior.LogDensity(phi)
}

func (o own) Tempered(power *graph.Node) density.Target {
	right := o.Posterior.Tempered(power)
	if o.cheap != nil {
		return onCheap{right, o.cheap}
	}
	if o.tempered == nil {
		return right
	}
	return density.Func(func(phi *graph.Node) *graph.Node {
		return graph.Add(right.LogDensity(phi), o.tempered(power, phi))
	})
}

// A target of a user's own whose methods contradict each other, or which mixes particles, is refused, with the two that
// do; a right one is not.
func TestTargetContradictsItself(t *testing.T) {
	sum := func(phi *graph.Node) *graph.Node { return graph.ReduceSum(phi, 1) }
	constant := func(phi *graph.Node) *graph.Node { return graph.AddScalar(graph.ZerosLike(sum(phi)), 3) }
	right := smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
		return graph.MulScalar(graph.Square(graph.AddScalar(sum(phi), -3)), -.35)
	}}
	mixed := func(phi *graph.Node) *graph.Node {
		return graph.Add(logNormal(phi), graph.BroadcastToDims(graph.ReduceAllSum(phi), phi.Shape().Dim(0)))
	}
	for _, c := range []struct {
		name   string
		target density.Target
		says   []string // empty: it is right
	}{
		{"Tempered without the prior", own{Posterior: right, tempered: func(_, phi *graph.Node) *graph.Node {
			return graph.Neg(logNormal(phi))
		}}, []string{"Tempered(0) and LogPrior + 0 LogLikelihood differ", "smc_test.own"}},
		{"Tempered with a power of its own", own{Posterior: right, tempered: func(power, phi *graph.Node) *graph.Node {
			wrong := graph.Sub(graph.Square(power), power)
			return graph.Mul(wrong, right.LogLikelihood(phi))
		}}, []string{"Tempered(0.5) and LogPrior + 0.5 LogLikelihood"}},
		{"LogDensity without the prior", own{Posterior: right, density: right.LogLikelihood},
			[]string{"LogDensity and LogPrior + LogLikelihood"}},
		{"prior mixes", smc.Posterior{Prior: mixed, Likelihood: sum}, []string{"LogPrior mixes particles"}},
		{"likelihood mixes", smc.Posterior{Prior: logNormal, Likelihood: mixed},
			[]string{"LogDensity mixes particles", "axis of particles"}},

		{"right", own{Posterior: right}, nil},
		{"other constants", own{Posterior: right, tempered: func(_, phi *graph.Node) *graph.Node {
			return constant(phi)
		}, density: func(phi *graph.Node) *graph.Node { return graph.Add(right.LogDensity(phi), constant(phi)) }}, nil},
		{"functions", right, nil},
	} {
		problem := density.Problem{Dim: 3, Initial: initial(3, func(z *graph.Node) *graph.Node { return z }),
			Target: func(compute.Nodes, []*graph.Node) density.Target { return c.target }}
		_, err := fit.Sample(t.Context(), problem,
			smc.Tempered{Kernel: mcmc.RandomWalkMetropolis{StepSize: .5}, Particles: 100, Moves: 1},
			run.Settings{Engine: computetest.Go(t)})
		if len(c.says) == 0 && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, want := range c.says {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q", c.name, err, want)
			}
		}
	}
}

// A cheap target that mixes particles is refused, since by it delayed acceptance is not exact. One that does not is
// taken.
func TestCheapTargetMixes(t *testing.T) {
	half := func(phi *graph.Node) *graph.Node {
		return graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5)
	}
	posterior := smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
		return graph.MulScalar(half(phi), 4)
	}}
	for name, cheap := range map[string]density.Func{
		"mixes": func(phi *graph.Node) *graph.Node { return graph.LogSoftmax(half(phi), 0) }, "right": half,
	} {
		_, err := fit.Sample(t.Context(), density.Problem{
			Dim: 2, Initial: initial(2, func(z *graph.Node) *graph.Node { return z }),
			Target: func(compute.Nodes, []*graph.Node) density.Target { return own{Posterior: posterior, cheap: cheap} },
		}, smc.Tempered{
			Kernel:    mcmc.DelayedAcceptance{Inner: mcmc.RandomWalkMetropolis{StepSize: .5}},
			Particles: 40, Moves: 1,
		}, run.Settings{Engine: computetest.Go(t)})
		const says = "target density.Func (a surrogate): LogDensity mixes particles"
		if wrong := name == "mixes"; wrong && (err == nil || !strings.Contains(err.Error(), says)) || !wrong && err != nil {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

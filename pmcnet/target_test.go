package pmcnet_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/pmcnet"
	"gobnn/pmcnet/annealed"

	"github.com/gomlx/gomlx/core/graph"
)

// PMC counts draws at which a user's target is NaN or +Inf, however few, and warns of them, as Annealed does of draws
// of its mixture; -Inf is right where there is no density. The evidences are those of a normal distribution and of half
// of one.
func TestTargetOfOnesOwn(t *testing.T) {
	const d = 2
	normal := func(phi *graph.Node) *graph.Node {
		return graph.AddScalar(graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5), -d*math.Log(2*math.Pi)/2)
	}
	beyond := func(bound, value float64) density.Func {
		return func(phi *graph.Node) *graph.Node {
			x := graph.Squeeze(graph.Slice(phi, graph.AxisRange(), graph.AxisElem(0)), 1)
			odd := graph.AddScalar(graph.ZerosLike(x), value)
			return graph.Where(graph.GreaterThan(x, graph.AddScalar(graph.ZerosLike(x), bound)), odd, normal(phi))
		}
	}
	const warns = "draws had a log-density of NaN or +Inf"
	for _, c := range []struct {
		name   string
		target density.Func
		value  float64
		warns  bool
	}{
		{"right", normal, 0, false},
		{"bound", beyond(0, math.Inf(-1)), math.Log(.5), false},
		{"NaN far out", beyond(2.5, math.NaN()), math.Log(1 - .0062), true},
		{"+Inf far out", beyond(2.5, math.Inf(1)), math.Log(1 - .0062), true},
	} {
		problem := density.Problem{Dim: d, Target: func(compute.Nodes, []*graph.Node) density.Target { return c.target },
			Initial: fittest.Normal(d)}
		algorithm := pmcnet.PMC{Proposals: 20, StdDev: 1, Iterations: 3, Ascent: pmcnet.NoAscent}
		settings := run.Settings{Engine: computetest.Go(t), Seed: 4}
		r, details := fittest.Sample[*pmcnet.Details](t, problem, algorithm, settings)
		if e := r.Draws.Evidence; !(math.Abs(e.Value-c.value) <= 5*e.StdErr+1e-3) {
			t.Errorf("%s: log evidence %.4f ± %.4f, exactly %.4f", c.name, e.Value, e.StdErr, c.value)
		}
		wrong := 0
		for _, i := range details.Trace {
			wrong += i.Wrong
		}
		if said := strings.Contains(strings.Join(r.Warnings, "\n"), warns); said != c.warns || (wrong > 0) != c.warns {
			t.Errorf("%s: %d of the draws are counted, and the warnings are %q", c.name, wrong, r.Warnings)
		}
		problem.Target = func(compute.Nodes, []*graph.Node) density.Target {
			return smc.Posterior{Prior: normal, Likelihood: func(phi *graph.Node) *graph.Node {
				return graph.Sub(c.target(phi), normal(phi))
			}}
		}
		tempered := annealed.Annealed{SMC: smc.Tempered{Kernel: mcmc.RandomWalkMetropolis{}, Particles: 300},
			Bridge: annealed.NoBridge}
		settings.Seed = 0
		r, _ = fittest.Sample[*annealed.Details](t, problem, tempered, settings)
		if said := strings.Contains(strings.Join(r.Warnings, "\n"), warns); said != c.warns {
			t.Errorf("%s, annealed: the warnings are %q", c.name, r.Warnings)
		}
	}
}

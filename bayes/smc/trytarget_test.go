package smc_test

import (
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/graph"
)

// own is a target with methods of its own, each of which may contradict the others.
type own struct {
	smc.RowPosterior
	density  func(phi *graph.Node) *graph.Node                 // LogDensity; nil: the right one
	tempered func(power, phi *graph.Node) *graph.Node          // added to Tempered
	first    func(n, phi *graph.Node) *graph.Node              // added to FirstRows
	rows     func(phi, from *graph.Node, rows int) *graph.Node // added to LogLikelihoodOf
}

func (o own) LogDensity(phi *graph.Node) *graph.Node {
	if o.density != nil {
		return o.density(phi)
	}
	return o.RowPosterior.LogDensity(phi)
}

func (o own) Tempered(power *graph.Node) density.Target {
	return plus(o.RowPosterior.Tempered(power), power, o.tempered)
}

func (o own) FirstRows(n *graph.Node) density.Target {
	return plus(o.RowPosterior.FirstRows(n), n, o.first)
}

// plus is the right target with something added to its log-density, if there is anything.
func plus(right density.Target, place *graph.Node, more func(place, phi *graph.Node) *graph.Node) density.Target {
	if more == nil {
		return right
	}
	return density.Func(func(phi *graph.Node) *graph.Node { return graph.Add(right.LogDensity(phi), more(place, phi)) })
}

func (o own) LogLikelihoodOf(phi, from *graph.Node, rows int) *graph.Node {
	right := o.RowPosterior.LogLikelihoodOf(phi, from, rows)
	if o.rows == nil {
		return right
	}
	return graph.Add(right, o.rows(phi, from, rows))
}

// A target of a user's own whose methods contradict each other, or which mixes particles, is refused, with the two that
// do; a right one is not.
func TestTargetContradictsItself(t *testing.T) {
	const rows = 7
	sum := func(phi *graph.Node) *graph.Node { return graph.ReduceSum(phi, 1) }
	constant := func(phi *graph.Node) *graph.Node { return graph.AddScalar(graph.ZerosLike(sum(phi)), 3) }
	right := smc.RowPosterior{Prior: logNormal, N: rows, Likelihood: func(phi, numbers *graph.Node) *graph.Node {
		y := graph.ConvertDType(graph.ExpandAxes(numbers, 0), phi.DType())
		y = graph.BroadcastToDims(y, phi.Shape().Dim(0), numbers.Shape().Dim(0))
		mean := graph.BroadcastToShape(graph.ExpandAxes(sum(phi), 1), y.Shape())
		return graph.MulScalar(graph.Square(graph.Sub(y, mean)), -.05)
	}}
	mixed := func(phi *graph.Node) *graph.Node {
		return graph.Add(logNormal(phi), graph.BroadcastToDims(graph.ReduceAllSum(phi), phi.Shape().Dim(0)))
	}
	mixing := right
	mixing.Prior = mixed
	const tempering, data = smc.LikelihoodTempering, smc.DataTempering
	for _, c := range []struct {
		name      string
		target    density.Target
		tempering smc.Tempering
		says      []string // empty: it is right
	}{
		{"Tempered without the prior", own{RowPosterior: right, tempered: func(_, phi *graph.Node) *graph.Node {
			return graph.Neg(logNormal(phi))
		}}, tempering, []string{"Tempered(0) and LogPrior + 0 LogLikelihood differ", "smc_test.own"}},
		{"Tempered with a power of its own", own{RowPosterior: right, tempered: func(power, phi *graph.Node) *graph.Node {
			wrong := graph.Sub(graph.Square(power), power)
			return graph.Mul(wrong, right.LogLikelihood(phi))
		}}, tempering, []string{"Tempered(0.5) and LogPrior + 0.5 LogLikelihood"}},
		{"LogDensity without the prior", own{RowPosterior: right, density: right.LogLikelihood}, tempering,
			[]string{"LogDensity and LogPrior + LogLikelihood"}},
		{"FirstRows takes all", own{RowPosterior: right, first: func(n, phi *graph.Node) *graph.Node {
			return graph.Sub(right.LogDensity(phi), right.FirstRows(n).LogDensity(phi))
		}}, data, []string{"FirstRows(0) and LogPrior"}},
		{"LogLikelihoodOf begins with the first row", own{RowPosterior: right,
			rows: func(phi, from *graph.Node, rows int) *graph.Node {
				return graph.Sub(right.LogLikelihoodOf(phi, graph.ZerosLike(from), rows),
					right.LogLikelihoodOf(phi, from, rows))
			}}, data, []string{"FirstRows(4) and LogPrior + LogLikelihoodOf for the first 4 rows"}},
		{"LogDensity without a row", own{RowPosterior: right, density: func(phi *graph.Node) *graph.Node {
			return right.FirstRows(graph.Scalar(phi.Graph(), phi.DType(), rows-1)).LogDensity(phi)
		}}, data, []string{"LogDensity and FirstRows(7)"}},
		{"prior mixes", smc.Posterior{Prior: mixed, Likelihood: sum}, tempering, []string{"LogPrior mixes particles"}},
		{"likelihood mixes", smc.Posterior{Prior: logNormal, Likelihood: mixed}, tempering,
			[]string{"LogDensity mixes particles", "axis of particles"}},
		{"prior mixes, rows", mixing, data, []string{"LogPrior mixes particles"}},

		{"right", own{RowPosterior: right}, tempering, nil},
		{"right rows", own{RowPosterior: right}, data, nil},
		{"other constants", own{RowPosterior: right, tempered: func(_, phi *graph.Node) *graph.Node {
			return constant(phi)
		}, density: func(phi *graph.Node) *graph.Node { return graph.Add(right.LogDensity(phi), constant(phi)) }},
			tempering, nil},
		{"functions", right, tempering, nil},
		{"functions, rows", right, data, nil},
	} {
		problem := density.Problem{Dim: 3, Initial: initial(3, func(z *graph.Node) *graph.Node { return z }),
			Target: func(compute.Nodes, []*graph.Node) density.Target { return c.target }}
		_, err := draw(t.Context(), problem, mcmc.RandomWalkMetropolis{StepSize: .5}, setup{
			Particles: 100, Moves: 1, Block: 2, Tempering: c.tempering, Engine: computetest.Go(t),
		})
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
	const rows = 4
	half := func(phi *graph.Node) *graph.Node {
		return graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5)
	}
	posterior := smc.RowPosterior{Prior: logNormal, N: rows, Likelihood: func(phi, numbers *graph.Node) *graph.Node {
		return graph.Add(graph.ExpandAxes(half(phi), 1), graph.ConvertDType(graph.ExpandAxes(numbers, 0), phi.DType()))
	}}
	for name, cheap := range map[string]density.Func{
		"mixes": func(phi *graph.Node) *graph.Node { return graph.LogSoftmax(half(phi), 0) }, "right": half,
	} {
		for _, tempering := range []smc.Tempering{smc.LikelihoodTempering, smc.DataTempering} {
			for _, target := range []density.Target{posterior, own{RowPosterior: posterior}} {
				_, err := draw(t.Context(), density.Problem{
					Dim: 2, Initial: initial(2, func(z *graph.Node) *graph.Node { return z }),
					Target: func(compute.Nodes, []*graph.Node) density.Target { return target },
				}, mcmc.DelayedAcceptance{
					Inner: mcmc.RandomWalkMetropolis{StepSize: .5}, Cheap: func(density.Target) density.Target { return cheap },
				}, setup{Particles: 40, Moves: 1, Tempering: tempering, Engine: computetest.Go(t)})
				const says = "target density.Func (on which mcmc.DelayedAcceptance moves): LogDensity mixes particles"
				if wrong := name == "mixes"; wrong && (err == nil || !strings.Contains(err.Error(), says)) || !wrong && err != nil {
					t.Errorf("%s, %s, %T: error %v", name, tempering, target, err)
				}
			}
		}
	}
}

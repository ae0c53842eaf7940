package smc_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/graph"
)

// initial draws a function of standard normals, [n, D].
func initial(d int, of func(z *graph.Node) *graph.Node) func(random.Stream, compute.DType, int) *graph.Node {
	return func(rng random.Stream, dtype compute.DType, n int) *graph.Node { return of(rng.Normal(dtype, n, d)) }
}

// perCoordinate is the log-density of independent coordinates, [J], from that of each, [J, D] to [J, D].
func perCoordinate(of func(x *graph.Node) *graph.Node) density.Func {
	return func(phi *graph.Node) *graph.Node { return graph.ReduceSum(of(phi), 1) }
}

// uniform draws numbers between 0 and 1 that are not 0, [n, 3].
func uniform(of func(u *graph.Node) *graph.Node) func(random.Stream, compute.DType, int) *graph.Node {
	return func(rng random.Stream, dtype compute.DType, n int) *graph.Node {
		return of(graph.MaxScalar(rng.Uniform(dtype, n, 3), 1e-12))
	}
}

// positive is a log-density of positive numbers.
func positive(x, logDensity *graph.Node) *graph.Node {
	return compute.Only(graph.GreaterThan(x, graph.ZerosLike(x)), logDensity)
}

// Where draws of the problem's own do not have the density of LogPrior, which makes the log evidence wrong, a run says
// so with the numbers and the cure; where they have it, however odd the density is, it does not. A right prior is
// refused in fewer than one of 10^9 runs.
func TestDrawsAreOfThePrior(t *testing.T) {
	same := func(x *graph.Node) *graph.Node { return x }
	add := func(v float64) func(x *graph.Node) *graph.Node {
		return func(x *graph.Node) *graph.Node { return graph.AddScalar(x, v) }
	}
	times := func(v float64) func(x *graph.Node) *graph.Node {
		return func(x *graph.Node) *graph.Node { return graph.MulScalar(x, v) }
	}
	only := func(i, d int, v float64) func(x *graph.Node) *graph.Node { // added to one coordinate
		return func(x *graph.Node) *graph.Node {
			row := make([]float64, d)
			row[i] = v
			return graph.Add(x, graph.BroadcastToShape(graph.ConvertDType(graph.Const(x.Graph(), [][]float64{row}), x.DType()),
				x.Shape()))
		}
	}
	const different = "Problem.Initial and the target's LogPrior are different distributions"
	for _, c := range []struct {
		name    string
		dim     int // 0: 3
		initial func(random.Stream, compute.DType, int) *graph.Node
		prior   density.Func
		says    []string // empty: it is right
	}{
		{name: "shifted", initial: initial(3, add(.4)), prior: logNormal,
			says: []string{different, "changes the mean of 4096 draws", "must draw from the density"}},
		{name: "one shifted", initial: initial(3, only(1, 3, -.5)), prior: logNormal,
			says: []string{different, "in coordinate 1"}},
		{name: "wide", initial: initial(3, times(1.4)), prior: logNormal, says: []string{different, "mean distance"}},
		{name: "far too wide", initial: initial(3, times(100)), prior: logNormal, says: []string{different, "mean distance"}},
		{name: "narrow", initial: initial(3, times(.7)), prior: logNormal, says: []string{different, "mean distance"}},
		{name: "all at 0", initial: initial(3, times(0)), prior: logNormal, says: []string{different, "mean distance"}},
		{name: "many coordinates", dim: 500, initial: initial(500, add(.2)), prior: logNormal,
			says: []string{different, "in coordinates "}},
		{name: "wide, many coordinates", dim: 1000, initial: initial(1000, times(2.2)), prior: logNormal,
			says: []string{different, "in coordinates "}},
		{name: "outside", initial: initial(3, same), says: []string{"log prior is not finite at", "of 4096 draws"},
			prior: perCoordinate(func(x *graph.Node) *graph.Node { return positive(x, graph.Neg(x)) })},
		{name: "NaN", initial: initial(3, same), says: []string{"log prior is not finite at", "of 4096 draws"},
			prior: perCoordinate(func(x *graph.Node) *graph.Node { return graph.Log(x) })},
		{name: "flat", initial: initial(3, same), prior: perCoordinate(times(0)), says: []string{different}},

		{name: "right", initial: initial(3, same), prior: logNormal},
		{name: "without a constant", initial: initial(3, same),
			prior: func(phi *graph.Node) *graph.Node { return graph.AddScalar(logNormal(phi), 7) }},
		{name: "right, many", dim: 1000, initial: initial(1000, same), prior: logNormal},
		{name: "right, too many to try", dim: 2_000, initial: initial(2_000, same), prior: logNormal},
		{name: "uniform", initial: uniform(same), prior: perCoordinate(func(x *graph.Node) *graph.Node {
			return positive(x, positive(graph.OneMinus(x), graph.ZerosLike(x)))
		})},
		{name: "half-normal", initial: initial(3, graph.Abs), prior: perCoordinate(func(x *graph.Node) *graph.Node {
			return positive(x, graph.MulScalar(graph.Square(x), -.5))
		})},
		{name: "Cauchy", initial: uniform(func(u *graph.Node) *graph.Node {
			angle := graph.MulScalar(graph.AddScalar(u, -.5), math.Pi)
			return graph.Div(graph.Sin(angle), graph.Cos(angle))
		}), prior: perCoordinate(func(x *graph.Node) *graph.Node { return graph.Neg(graph.Log1P(graph.Square(x))) })},
		// A step at 1/2 where no gradient tells of it: 0 to 1/2 has probability 3/4, and density 3/2; the rest has 1/2.
		{name: "steps", initial: uniform(func(u *graph.Node) *graph.Node {
			return graph.Max(graph.MulScalar(u, 2./3), graph.AddScalar(graph.MulScalar(u, 2), -1))
		}), prior: perCoordinate(func(x *graph.Node) *graph.Node {
			low := graph.LessThan(x, graph.AddScalar(graph.ZerosLike(x), .5))
			density := graph.Where(low, graph.AddScalar(graph.ZerosLike(x), math.Log(1.5)),
				graph.AddScalar(graph.ZerosLike(x), math.Log(.5)))
			return positive(x, positive(graph.OneMinus(x), density))
		})},
		// The logarithm of an exponential variable: log-density x - exp(x).
		{name: "skewed", initial: uniform(func(u *graph.Node) *graph.Node { return graph.Log(graph.Neg(graph.Log(u))) }),
			prior: perCoordinate(func(x *graph.Node) *graph.Node { return graph.Sub(x, graph.Exp(x)) })},
	} {
		if c.dim == 0 {
			c.dim = 3
		}
		problem := density.Problem{Dim: c.dim, Initial: c.initial,
			Target: func(compute.Nodes, []*graph.Node) density.Target {
				return smc.Posterior{Prior: c.prior, Likelihood: perCoordinate(times(0))}
			}}
		_, err := fit.Sample(t.Context(), problem,
			smc.Tempered{Kernel: mcmc.RandomWalkMetropolis{}, Moves: 1, Particles: 100},
			run.Settings{Engine: computetest.Go(t)})
		if len(c.says) == 0 && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, says := range c.says {
			if !strings.Contains(fmt.Sprint(err), says) {
				t.Errorf("%s: error %v does not say %q", c.name, err, says)
			}
		}
	}
}

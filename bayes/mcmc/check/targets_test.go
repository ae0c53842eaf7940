package check

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	. "github.com/gomlx/gomlx/core/graph"
)

// everyTarget are the targets of the package and a few of other dimensions.
func everyTarget() []Target {
	return append(Targets(),
		gaussian([]float64{3}, [][]float64{{.5}}),
		gaussian([]float64{1, 2, -1}, [][]float64{{1}, {.5, .7}, {-.3, .2, 2}}),
		regression(Linear{X: [][]float64{{1}, {2}}, NoiseStdDev: .3}),
		byBatch(2))
}

// A target's three parts belong to one another. The Rosenblatt transform of exact draws is uniform, which ties Uniform
// to Draw; and its Jacobian, a product of conditional densities, is the density, which ties it to LogDensity: their
// logs differ by one constant for all x, and for each data. The derivatives are central differences.
func TestTargetsAgree(t *testing.T) {
	engine := computetest.Go(t)
	for _, target := range everyTarget() {
		if err := target.check(); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(8, 9))
		const rows, h = 40, 1e-5
		var phi, data, jacobian []float64
		_, common := target.Draw(r)
		for range rows {
			x, _ := target.Draw(r)
			if target.Data > 0 { // one data set, but places where it puts its mass
				for i := range x {
					x[i] = .5*r.NormFloat64() + float64(i)*-.5
				}
			}
			sum := 0.0
			for k := range x {
				up, down := append([]float64(nil), x...), append([]float64(nil), x...)
				up[k] += h
				down[k] -= h
				sum += math.Log((target.Uniform(up, common)[k] - target.Uniform(down, common)[k]) / (2 * h))
			}
			phi, data, jacobian = append(phi, x...), append(data, common...), append(jacobian, sum)
		}
		args := []any{compute.Floats(compute.Float64, phi, rows, target.D)}
		if target.Data > 0 {
			args = append(args, compute.Floats(compute.Float64, data, rows, target.Data))
		}
		log := computetest.Run(t, engine, func(_ *Graph, a []*Node) []*Node {
			return []*Node{target.LogDensity(a[0], append(a, nil)[1])}
		}, args...)[0]
		for i := range log {
			if d := (log[i] - jacobian[i]) - (log[0] - jacobian[0]); math.Abs(d) > 2e-4 {
				t.Errorf(
					"%s: at %v the log-density is off by %v from the Rosenblatt transform's", target.Name,
					phi[i*target.D:(i+1)*target.D], d,
				)
				break
			}
		}

		uniforms := make([][]float64, target.D)
		for range 4000 {
			for k, u := range target.Uniform(target.Draw(r)) {
				uniforms[k] = append(uniforms[k], u)
			}
		}
		for k := range uniforms {
			if s, p := uniformTest(uniforms[k]); p < 1e-4 {
				t.Errorf("%s: coordinate %d of exact draws is not uniform: distance %.3f, p-value %.2g", target.Name, k+1, s, p)
			}
		}
	}
}

// Means and variances of the built-in targets by formula: the mixture's and the banana's, the Gumbel distribution's
// (mean a + b gamma, variance (pi b)^2/6), Gamma(3, 2)'s.
func TestTargetMoments(t *testing.T) {
	const n, gamma = 100_000, 0.5772156649015329
	phi := func(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }
	mass := (math.Erf(1/math.Sqrt2) + math.Erf(1.5/math.Sqrt2)) / 2
	cut := (phi(-1.5) - phi(1)) / mass
	for _, c := range []struct {
		target         Target
		mean, variance []float64
	}{
		{Targets()[0], []float64{1, -.7}, []float64{2.25, .52}},
		{
			skewed(), []float64{-1 + .7*gamma, .5 - 1.2*gamma},
			[]float64{math.Pow(.7*math.Pi, 2) / 6, math.Pow(1.2*math.Pi, 2) / 6},
		},
		{banana(), []float64{.5, .125}, []float64{1, .25*(2+4*.25) + .36}},
		{
			mixture(), []float64{.34, -.11},
			[]float64{.3*(.36+1.44) + .7*(.81+1) - .34*.34, .3*(.81+.64) + .7*(.25+.25) - .11*.11},
		},
		{bounded(), []float64{1.5, cut}, []float64{.75, 1 + (-1.5*phi(-1.5)-phi(1))/mass - cut*cut}},
		{conjugate(), []float64{.5, -1}, []float64{2.25, .64}}, // over all data: the prior's
	} {
		r := rand.New(rand.NewPCG(4, 4))
		for k := range c.mean {
			var x, squares []float64
			for range n {
				draw, _ := c.target.Draw(r)
				x = append(x, draw[k])
				squares = append(squares, (draw[k]-c.mean[k])*(draw[k]-c.mean[k]))
			}
			for name, test := range map[string]struct {
				values []float64
				want   float64
			}{"mean": {x, c.mean[k]}, "variance": {squares, c.variance[k]}} {
				if z, p := zTest(test.values, test.want); p < 1e-4 {
					t.Errorf("%s: %s of coordinate %d is off by %.1f standard errors from %v", c.target.Name, name, k+1, z, test.want)
				}
			}
		}
	}
}

// The p-values of every statistic are uniform, or not below it, where all is right: of 4000 the share below 0.01 and
// below 0.001 is within 4.5 standard errors.
func TestStatistics(t *testing.T) {
	var r *rand.Rand
	const n, times = 200, 4000
	for name, test := range map[string]func() float64{
		"zTest": func() float64 {
			x := make([]float64, n)
			for i := range x {
				x[i] = 2 + r.NormFloat64()
			}
			_, p := zTest(x, 2)
			return p
		},
		"meanTest": func() float64 {
			x := make([]float64, n)
			for i := range x {
				x[i] = r.NormFloat64()
			}
			return second(meanTest(x))
		},
		"varianceTest": func() float64 {
			x := make([]float64, n)
			for i := range x {
				x[i] = r.NormFloat64()
			}
			return second(varianceTest(x))
		},
		"uniformTest": func() float64 {
			x := make([]float64, n)
			for i := range x {
				x[i] = r.Float64()
			}
			_, p := uniformTest(x)
			return p
		},
		"sameTest": func() float64 {
			x, y := make([]float64, n), make([]float64, n)
			for i := range x {
				x[i], y[i] = r.ExpFloat64(), r.ExpFloat64()
			}
			_, p := sameTest(x, y)
			return p
		},
		"rankTest": func() float64 {
			x := make([]int, n)
			for i := range x {
				x[i] = r.IntN(51)
			}
			_, p := rankTest(x, 50)
			return p
		},
	} {
		r = rand.New(rand.NewPCG(1, 9)) // the same numbers in whatever order the map gives
		for _, level := range []float64{.01, .001} {
			below := 0.0
			for range times {
				if test() < level {
					below++
				}
			}
			if bound := times*level + 4.5*math.Sqrt(times*level); below > bound || below < times*level/4-1 {
				t.Errorf("%s: %v of %v p-values are below %v", name, below, times, level)
			}
		}
	}
	for name, p := range map[string]float64{
		"a mean":    second(zTest([]float64{1, 1.1, .9, 1, 1.05, .95}, 0)),
		"no spread": second(zTest([]float64{1, 1, 1}, 0)),
		"NaN":       second(zTest([]float64{math.NaN(), 1, 1}, 0)),
		"ranks":     second(rankTest(make([]int, 500), 50)),
		"uniforms":  second(uniformTest([]float64{.01, .02, .03, .01, .02, .01, .05, .06, .02, .03})),
	} {
		if p > 1e-4 {
			t.Errorf("%s: p-value %v", name, p)
		}
	}
	if p := second(zTest([]float64{2, 2, 2}, 2)); p != 1 {
		t.Errorf("values that all are what they should be: p-value %v", p)
	}
	if z := score(math.NaN()); fmt.Sprint(z) != fmt.Sprint(score(1)) || math.IsInf(z, 0) {
		t.Errorf("score of NaN is %v", z)
	}
}

func second(_, p float64) float64 { return p }

// Holm's rule: with three tests at f the smallest p-value must be below f/3, the next below f/2, the last below f, and
// it ends at the first that is not.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		p    []float64
		fail []bool
	}{
		{[]float64{.02, .009, .014}, []bool{true, true, true}},
		{[]float64{.02, .009, .016}, []bool{false, true, false}},
		{[]float64{.011, .012, .013}, []bool{false, false, false}},
		{[]float64{.5, .001, math.NaN()}, []bool{false, true, true}},
	} {
		r := Report{}
		for _, p := range c.p {
			r.add("t", "n", 0, p*falseAlarm/.03)
		}
		r.exact("t", "holds", 0)
		r.exact("t", "does not", 2)
		r.judge()
		for i, want := range append(c.fail, false, true) {
			if r.tests[i].failed != want {
				t.Errorf("p-values %v: test %d failed is %v", c.p, i, r.tests[i].failed)
			}
		}
	}
}

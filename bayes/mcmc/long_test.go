//go:build long

package mcmc

import (
	"fmt"
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat"
)

// moment is the exact mean and standard deviation of a function of phi.
type moment struct {
	name     string
	of       func(phi []float64) float64
	mean, sd float64
}

// checkMoments compares the draws with exact moments. Chains are independent, so the spread of their means gives a
// right standard error.
func checkMoments(t *testing.T, draws *Draws, chains, perChain int, moments []moment) {
	t.Helper()
	for _, m := range moments {
		var means, squares []float64
		for chain := range chains {
			mean, square := 0.0, 0.0
			for i := range perChain {
				e := m.of(draws.At(chain, i)) - m.mean
				mean += e / float64(perChain)
				square += e * e / float64(perChain)
			}
			means, squares = append(means, mean), append(squares, square)
		}
		for _, c := range []struct {
			what   string
			values []float64
			want   float64
		}{{"mean", means, 0}, {"variance", squares, m.sd * m.sd}} {
			mean, sd := stat.MeanStdDev(c.values, nil)
			if z := (mean - c.want) / (sd / math.Sqrt(float64(chains))); !(math.Abs(z) <= zMax) {
				t.Errorf("%s: the %s is off by %.3g, %.1f standard errors", m.name, c.what, mean-c.want, z)
			}
			if c.what == "mean" && !(sd < m.sd) {
				t.Errorf("%s: the chains' means spread by %.3g, the posterior by %.3g: this tests little", m.name, sd, m.sd)
			}
		}
	}
}

// ar1 is a Gaussian in d dimensions with different means and scales and correlations rho^|i-k|.
func ar1(d int, rho float64) (density.Problem, []moment) {
	var m, s []float64
	var moments []moment
	for k := range d {
		m, s = append(m, float64(k)/10-1), append(s, .5+float64(k%7))
		moments = append(
			moments, moment{fmt.Sprintf("coordinate %d", k), func(phi []float64) float64 { return phi[k] }, m[k], s[k]},
		)
		if k > 0 { // z_k + z_(k-1) has variance 2 (1 + rho)
			moments = append(moments, moment{fmt.Sprintf("z%d + z%d", k-1, k), func(phi []float64) float64 {
				return (phi[k]-m[k])/s[k] + (phi[k-1]-m[k-1])/s[k-1]
			}, 0, math.Sqrt(2 * (1 + rho))})
		}
	}
	return density.Problem{Name: "AR(1)", Dim: d, Target: func(compute.Nodes, []*Node) density.Target {
		return density.Func(func(phi *Node) *Node {
			z := Div(Sub(phi, row(phi, m)), row(phi, s))
			innovations := Sub(Slice(z, AxisRange(), AxisRange(1)), MulScalar(Slice(z, AxisRange(), AxisRange(0, d-1)), rho))
			begin := Squeeze(Slice(z, AxisRange(), AxisRange(0, 1)), 1)
			return MulScalar(Add(Square(begin), MulScalar(ReduceSum(Square(innovations), 1), 1/(1-rho*rho))), -.5)
		})
	}}, moments
}

// TestNUTSPosteriorsLong is a posterior of 50 coordinates, with long trajectories, which are what XLA is for.
func TestNUTSPosteriorsLong(t *testing.T) {
	gaussian, moments := ar1(50, .9)
	posteriorsByNUTS(t, onNUTS{gaussian, moments, computetest.Engines(t)[0], compute.Float64})
}

// onNUTS is a posterior whose moments are known.
type onNUTS struct {
	problem density.Problem
	moments []moment
	engine  *compute.Engine
	dtype   compute.DType
}

func posteriorsByNUTS(t *testing.T, cases ...onNUTS) {
	t.Helper()
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s/%s/%s", c.problem.Name, c.engine.Name(), c.dtype), func(t *testing.T) {
			chains, s := Chains{Chains: 60, Draws: 80, WarmUp: 100}, run.Settings{Seed: 1, DType: c.dtype, Engine: c.engine}
			if testing.Short() {
				chains.Chains, chains.Draws = 30, 40
			}
			_, result := sample(t, c.problem, with(chains, NUTS{MaxDepth: 7}), s)
			checkMoments(t, result.Draws, chains.Chains, chains.Draws, c.moments)
			acceptance := 0.0
			for _, chain := range result.Stats {
				acceptance += chain.Acceptance / float64(chains.Chains)
			}
			if math.Abs(acceptance-.8) > .1 {
				t.Errorf("mean acceptance %.3f, want about 0.8", acceptance)
			}
		})
	}
}

//go:build long

package mcmc

import (
	"fmt"
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
)

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

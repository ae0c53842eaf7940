package smc

import (
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"

	. "github.com/gomlx/gomlx/core/graph"
)

// Even particles take full steps at even transitions and odd ones at odd transitions; of the others the share's root is
// uniform: 50 000 shares tell a probability of .5 to .0022, of which .01 is more than 4 standard errors. Only full
// steps count for ofFull.
func TestStepShares(t *testing.T) {
	const n = 100000
	for odd := range 2 {
		out := computetest.Run(t, computetest.Engines(t)[0], func(g *Graph, _ []*Node) []*Node {
			shares, full := stepShares(random.New(g, 3), compute.Float32, n, Scalar(g, compute.Float32, float64(odd)))
			values := Const(g, []float32{.2, .9, .4})
			return []*Node{shares, full, ofFull(values, Const(g, []float32{1, 0, 1}))}
		})
		below := map[float64]float64{1. / 25: .2, 1. / 4: .5, .81: .9} // and the probability
		count := map[float64]float64{}
		for i, v := range out[0] {
			if full := i%2 == odd; full != (v == 1) || full != (out[1][i] == 1) || !(v >= 0 && v <= 1) {
				t.Fatalf("particle %d, odd %d: share %v, full %v", i, odd, v, out[1][i])
			}
			for bound := range below {
				if v < bound {
					count[bound]++
				}
			}
		}
		for bound, want := range below {
			if got := count[bound] / (n / 2); math.Abs(got-want) > .01 {
				t.Errorf("%.3f of the shares are below %v, want %v", got, bound, want)
			}
		}
		computetest.Near(t, "mean of full steps", out[2], []float64{.3}, 1e-6)
	}
}

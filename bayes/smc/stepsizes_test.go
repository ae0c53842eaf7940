package smc

import (
	"math"
	"slices"
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

// Scouts far above the particles are told, unless twenty first particles or more have descendants as high; scouts like
// the particles, and what is not finite, are not.
func TestOutlook(t *testing.T) {
	const n = 1000
	particles, eve := make([]float64, n), make([]int32, n)
	for i := range particles { // an exponential distribution below 0: a Gaussian mode in the plane
		particles[i], eve[i] = math.Log((float64(i)+.5)/n), int32(i)
	}
	high := func(count int) []float64 {
		out := slices.Clone(particles)
		for i := range count {
			out[i] = 5
		}
		return out
	}
	for _, c := range []struct {
		name               string
		particles, settled []float64
		above              int
		warns              bool
	}{
		{"the same", particles, particles, 0, false},
		{"higher", particles, high(2), 2, true},
		{"known to few", high(19), high(2), 2, true},
		{"known", high(20), high(2), 2, false},
		{"not finite", particles, []float64{math.Inf(-1), math.NaN()}, 0, false},
		{"none finite", []float64{math.Inf(-1)}, high(1), 0, false},
	} {
		var o outlook
		o.add(c.particles, eve, c.settled)
		if warns := o.warning(n) != ""; o.Above != c.above || warns != c.warns || o.Rounds != 1 {
			t.Errorf("%s: %+v, warns: %v", c.name, o, warns)
		}
	}
}

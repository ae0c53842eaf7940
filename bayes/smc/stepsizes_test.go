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

// Half of the particles take the full step, and of the others the share's root is uniform: 100 000 shares tell a
// probability of .3 to .0015, of which .007 is more than 4 standard errors. Only full steps count for ofFull; where
// there is none, all do.
func TestStepShares(t *testing.T) {
	const n = 100000
	out := computetest.Run(t, computetest.Engines(t)[0], func(g *Graph, _ []*Node) []*Node {
		shares, full := stepShares(random.New(g, 3), compute.Float32, n)
		values := Const(g, [][]float32{{.2, .9, .4}, {.2, .9, .4}})
		return []*Node{shares, full, ofFull(values, Const(g, [][]float32{{1, 0, 1}, {0, 0, 0}}), 1)}
	})
	shares, full := out[0], out[1]
	for _, c := range []struct{ below, want float64 }{{1. / 25, .1}, {1. / 4, .25}, {.999999, .5}} {
		count := 0.
		for i, v := range shares {
			if v < c.below {
				count++
			}
			if (v == 1) != (full[i] == 1) {
				t.Fatalf("the share %v counts as full: %v", v, full[i])
			}
		}
		if got := count / n; math.Abs(got-c.want) > .007 {
			t.Errorf("%.3f of the shares are below %v, want %v", got, c.below, c.want)
		}
	}
	if least, most := slices.Min(shares), slices.Max(shares); !(least >= 0) || most != 1 {
		t.Errorf("shares are from %v to %v", least, most)
	}
	computetest.Near(t, "means of full steps", out[2], []float64{.3, .5}, 1e-6)
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
		if warns := o.warning(n, "first particles") != ""; o.Above != c.above || warns != c.warns || o.Rounds != 1 {
			t.Errorf("%s: %+v, warns: %v", c.name, o, warns)
		}
	}
}

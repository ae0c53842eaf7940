package mcmc

import (
	"math"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat/distuv"
)

// From the mode of a standard normal with a step of 0.45 no trajectory of 4 leaves reaches a quarter of the period, and
// each of 8 goes beyond it: trees end in their third doubling, after 4 to 7 gradients, and those that have all 7 come
// from the complete tree.
func TestNUTSLengths(t *testing.T) {
	const particles, stepSize = 500, .45
	normal := density.Func(func(phi *Node) *Node { return MulScalar(Square(Squeeze(phi, 1)), -.5) })
	chains := newNUTSChains(t, computetest.Go(t), compute.Float64, NUTS{}, normal, nil)
	chains.start(make([]float64, particles), 1)
	lengths := make([]float64, particles) // of each first transition
	for range 7 {
		m := chains.move(stepSize)
		for j := range lengths {
			if m.complete[j] == 1 && lengths[j] == 0 {
				lengths[j] = m.gradients[j]
			}
		}
	}
	counts := map[float64]int{}
	for _, l := range lengths {
		counts[l]++
	}
	if slices.Min(lengths) < 4 || slices.Max(lengths) > 7 || counts[7] == 0 || counts[4]+counts[5]+counts[6] == 0 {
		t.Errorf("transitions took gradients: %v", counts)
	}
}

// A target that is NaN above 1: draws are of its part below 1. Particles that begin above 1 come below it, and
// neither these nor particles that are NaN change the others.
func TestNUTSNonFinite(t *testing.T) {
	const high, stepSize = 1, .9
	holed := density.Func(func(phi *Node) *Node {
		x := Squeeze(phi, 1)
		return Where(GreaterThan(x, ConstAs(x, float64(high))), Sqrt(Neg(OnesLike(x))), MulScalar(Square(x), -.5))
	})
	chains := newNUTSChains(t, computetest.Go(t), compute.Float32, NUTS{}, holed, nil)
	target := distuv.UnitNormal
	phi := gumbel().draws(j)
	for i := range phi {
		phi[i] = target.Quantile(target.CDF(high) * (float64(i) + .5) / float64(j))
	}
	broken := slices.Clone(phi)
	broken[0], broken[2] = 1.3, math.NaN()

	chains.start(phi, 1)
	after, _ := chains.afterTransitions(stepSize, 1, 4)
	follows(t, "truncated normal", after, func(x float64) float64 { return min(1, target.CDF(x)/target.CDF(high)) })
	chains.start(broken, 1)
	beside, _ := chains.afterTransitions(stepSize, 1, 4)
	for i := range phi {
		switch {
		case i == 0 && !(beside[0] <= high):
			t.Errorf("the particle that began in the hole is at %v", beside[0])
		case i == 2 && !math.IsNaN(beside[2]):
			t.Errorf("the particle that is NaN went to %v", beside[2])
		case i != 0 && i != 2 && beside[i] != after[i]:
			t.Fatalf("particle %d went to %v instead of %v beside one that is NaN", i, beside[i], after[i])
		}
	}

	chains.start(broken, 1)
	divergences, holes := 0., 0.
	for range 10 {
		m := chains.move(stepSize)
		for i := range phi {
			divergences += m.divergent[i]
			holes += m.nonFinite[i]
			if m.nonFinite[i] == 1 && (m.divergent[i] != 1 || m.complete[i] != 1) {
				t.Fatalf("particle %d met a hole: divergent %v, complete %v", i, m.divergent[i], m.complete[i])
			}
		}
		if m.nonFinite[2] != 1 || m.accepted[2] != 0 || m.acceptance[2] != 0 {
			t.Fatalf(
				"the particle that is NaN: non-finite %v, accepted %v, acceptance %v", m.nonFinite[2], m.accepted[2],
				m.acceptance[2],
			)
		}
	}
	if holes < float64(j)/10 || divergences != holes {
		t.Errorf("%v moves met the hole, %v diverged", holes, divergences)
	}
}

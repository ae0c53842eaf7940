package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// QuantilesWithout takes the root of a polynomial where the mixture is smooth enough, and solves anew where not. What
// it finds is compared with quantiles of the mixture with the group removed: 1.5 % of the shift is allowed, which one
// step of Newton's method exceeds. No p is a whole number of the 180 particles left: where it is, narrow particles
// leave a gap at p, in which every point is a quantile.
func TestQuantilesWithout(t *testing.T) {
	const particles, groups = 200, 10
	for _, test := range []struct {
		name  string
		noise float64
	}{{"smooth", 1}, {"rough", 0.1}, {"bumps", 0.01}} {
		for seed := range uint64(30) {
			rng := rand.New(rand.NewPCG(1, seed))
			var m Mixture
			for range particles {
				m.Weights = append(m.Weights, 1.0/particles)
				m.Parts = append(m.Parts, distuv.Normal{Mu: rng.ExpFloat64(), Sigma: test.noise}) // asymmetric
			}
			var bounds []int
			var rest []float64
			for g := range groups + 1 {
				bounds = append(bounds, g*particles/groups)
			}
			for range groups {
				rest = append(rest, 1-1.0/groups)
			}
			for _, p := range []float64{0.026, 0.48, 0.91} {
				q, out := m.Quantile(p), make([]float64, groups)
				m.QuantilesWithout(p, q, bounds, rest, out)
				for g := range groups {
					removed := Mixture{Parts: slices.Concat(m.Parts[:bounds[g]], m.Parts[bounds[g+1]:])}
					for range removed.Parts {
						removed.Weights = append(removed.Weights, 1/float64(len(removed.Parts)))
					}
					want := removed.Quantile(p)
					if limit := 0.015*math.Abs(want-q) + 1e-12; math.Abs(out[g]-want) > limit {
						t.Errorf("%s, seed %d, p = %v, without group %d: shift %.6g, want %.6g", test.name, seed, p, g, out[g]-q, want-q)
					}
				}
			}
		}
	}
}

package metric

import (
	"math"
	"math/rand/v2"
	"sort"

	"gonum.org/v1/gonum/floats"
)

// newEnergyScore returns the energy score, the mean over rows of
//
//	E||X - y|| - E||X - X'|| / 2
//
// where X and X' are independent draws of the predictive distribution of a row's targets and ||.|| is the Euclidean
// norm (Gneiting and Raftery 2007, eq. 22), for regression. Lower is better. It sees dependence between the targets,
// which scores of one target alone do not. Of one target it is the CRPS, which [newCRPS] computes without draws.
//
// The norm adds squares of the targets' own units. Where these differ, the target of the largest numbers decides: take
// [bayes.Prediction.Standardised] and [bayes.Prediction.StandardiseTarget], which give each target its standard
// deviation as unit.
//
// Of several targets it is estimated from 300 draws for each row, from the seed, without bias. Their error is in both
// standard errors, and small where there are hundreds of rows.
func newEnergyScore(seed uint64) *measure {
	s := &energyScore{seed: seed}
	return &measure{name: "energy score", scorer: &rowMean{score: s.score}}
}

const energyDraws = 300 // the distances between them take most of the time

type energyScore struct{ seed, rows uint64 }

// draw draws from a row's mixture, independently: the differences from the targets, [energyDraws, Targets], in their
// own units, and the groups of the particles, in order.
func (s *energyScore) draw(r *row) (x []float64, groups []int) {
	rng := rand.New(rand.NewPCG(s.seed, s.rows))
	s.rows++
	cumulated := make([]float64, len(r.weights))
	floats.CumSum(cumulated, r.weights)
	particles := make([]int, energyDraws)
	for d := range particles {
		u := rng.Float64() * cumulated[len(cumulated)-1]
		particles[d] = min(sort.SearchFloat64s(cumulated, u), len(cumulated)-1)
	}
	sort.Ints(particles)
	group := 0
	for _, i := range particles {
		for i >= r.bounds[group+1] {
			group++
		}
		groups = append(groups, group)
		for k, parts := range r.parts {
			u := (float64(rng.Uint64()>>11) + 0.5) * 0x1p-53
			x = append(x, r.scales[k]*(parts[i].Quantile(u)-r.ys[k]))
		}
	}
	return x, groups
}

// score is the mean distance of the draws from the target, less half the mean distance between two of them. Without the
// particles of a group it is that of the others' draws.
func (s *energyScore) score(r *row, out []float64) {
	x, groups := s.draw(r)
	count, near := make([]float64, r.groups), make([]float64, r.groups) // draws and the sum of their distances from y
	apart := make([][]float64, r.groups)                                // sums of distances between draws of two groups
	for g := range apart {
		apart[g] = make([]float64, r.groups)
	}
	for d, g := range groups {
		one := x[d*r.targets:][:r.targets]
		count[g]++
		near[g] += floats.Norm(one, 2)
		for other, h := range groups[:d] {
			square := 0.
			for k, v := range x[other*r.targets:][:r.targets] {
				square += (v - one[k]) * (v - one[k])
			}
			apart[g][h] += math.Sqrt(square)
		}
	}
	without := func(left int) float64 {
		draws, fromY, between := 0., 0., 0.
		for g, sums := range apart {
			for h, sum := range sums {
				if g != left && h != left {
					between += sum
				}
			}
			if g != left {
				draws += count[g]
				fromY += near[g]
			}
		}
		return fromY/draws - between/(draws*(draws-1))
	}
	for g := range out {
		out[g] = without(g - 1)
	}
}

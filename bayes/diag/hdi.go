package diag

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
)

// HDI returns the highest-density interval of weighted draws, [J]. It is the shortest interval between two draws that
// holds at least the given mass, which lies within (0, 1). The zero value of w means equal weights. It is always one
// interval, also for a distribution with several modes. (Kruschke 2015, Doing Bayesian data analysis, section 4.3.4;
// ArviZ takes one draw more where mass times J is whole.) Draws of weight 0 are ignored; any other draw that is not
// finite is an error that wraps [errNonFinite].
func HDI(values []float64, w bayes.LogWeights, mass float64) (lower, upper float64, err error) {
	if !(mass > 0 && mass < 1) {
		return 0, 0, fmt.Errorf("diag: HDI of mass %v: it must lie between 0 and 1", mass)
	}
	if len(values) == 0 || w.Len() > 0 && w.Len() != len(values) {
		return 0, 0, fmt.Errorf("diag: HDI of %d draws with %d weights", len(values), w.Len())
	}
	type draw struct{ value, weight float64 }
	var draws []draw
	for j, v := range values {
		weight := 1 / float64(len(values))
		if w.Len() > 0 {
			weight = math.Exp(w.At(j))
		}
		if weight == 0 {
			continue
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, 0, fmt.Errorf("%w: draw %d is %v, and its weight %v", errNonFinite, j, v, weight)
		}
		draws = append(draws, draw{v, weight})
	}
	slices.SortFunc(draws, func(a, b draw) int { return cmp.Compare(a.value, b.value) })
	lower, upper = draws[0].value, draws[len(draws)-1].value
	held, last := 0., 0 // held is the mass of the draws from i to last-1
	for i, first := range draws {
		for ; last <= i || last < len(draws) && held < mass-1e-9; last++ {
			held += draws[last].weight
		}
		if held < mass-1e-9 {
			break
		}
		if end := draws[last-1].value; end-first.value < upper-lower {
			lower, upper = first.value, end
		}
		held -= draws[i].weight
	}
	return lower, upper, nil
}

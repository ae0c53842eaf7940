package diag

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// RHat returns the rank-normalised split R-hat of a parameter, the larger of two (Vehtari et al. 2021, sections 4.1 and
// 4.2). R-hat of the draws' normal scores shows chains of different location. R-hat of the normal scores of the
// distances from the median shows chains of different spread.
func (c *Chains) RHat(parameter int) (float64, error) {
	if err := c.checkParameter("RHat", parameter); err != nil {
		return 0, err
	}
	w := newWorkspace(c)
	w.load(parameter)
	return larger(w.rhat()), nil
}

func (w *workspace) rhat() (bulk, folded float64) {
	bulk = w.rhatOf(w.normalScores(w.byValue, w.values))
	folded = w.rhatOf(w.normalScores(w.fold(), w.values))
	return bulk, folded
}

// larger is the larger of the two R-hats. The folded one is NaN if all draws are equally far from their median, as
// draws of two values are: then it is the other.
func larger(bulk, folded float64) float64 {
	if math.IsNaN(folded) {
		return bulk
	}
	return max(bulk, folded)
}

// rhatOf is sqrt(var+ / W) of half chains x, [halves, half] (Vehtari et al. 2021, section 3.1).
func (w *workspace) rhatOf(x []float64) float64 {
	n := float64(w.half)
	means := make([]float64, w.halves)
	within := 0.0
	for m := range means {
		mean, variance := meanVariance(x[m*w.half : (m+1)*w.half])
		means[m] = mean
		within += variance / float64(w.halves)
	}
	_, between := meanVariance(means)
	return math.Sqrt((n-1)/n + between/within)
}

// meanVariance returns the mean and the variance. For equal values both are exact, so that a chain that never moves has
// variance 0; a sum divided by the number of values may be rounded.
func meanVariance(x []float64) (mean, variance float64) {
	mean = x[0]
	for _, v := range x {
		if v != mean {
			return stat.MeanVariance(x, nil)
		}
	}
	return mean, 0
}

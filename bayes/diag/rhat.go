package diag

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// RHat is the rank-normalised split R-hat of a parameter: the larger of that of normal scores of the draws, which shows
// chains of different location, and that of normal scores of their distances from the median, which shows chains of
// different spread (Vehtari et al. 2021, sections 4.1 and 4.2).
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

// meanVariance are the mean and the variance. They are exact for equal values, so that a chain that never moves has
// variance 0; a sum divided by the number of values can round.
func meanVariance(x []float64) (mean, variance float64) {
	mean = x[0]
	for _, v := range x {
		if v != mean {
			return stat.MeanVariance(x, nil)
		}
	}
	return mean, 0
}

package diag

import "math"

// ESS is the effective sample size of a parameter for the centre of its distribution, by normal scores of the ranks:
// the bulk ESS (Vehtari et al. 2021, sections 3.2 and 4.3). Of S draws in all chains it is at most S log10(S).
func (c *Chains) ESS(parameter int) (float64, error) {
	if err := c.checkParameter("ESS", parameter); err != nil {
		return 0, err
	}
	w := newWorkspace(c)
	w.load(parameter)
	return w.bulkESS(), nil
}

func (w *workspace) bulkESS() float64 { return w.essOf(w.normalScores(w.byValue, w.values)) }

// tailESS is the ESS for the worse of the 5 % and the 95 % quantile.
func (w *workspace) tailESS() float64 { return min(w.quantileESS(0.05), w.quantileESS(0.95)) }

// quantileESS is the ESS of the indicator of what lies at or below a quantile.
func (w *workspace) quantileESS(prob float64) float64 {
	limit := w.quantile(prob)
	for i, v := range w.split {
		w.values[i] = 0
		if v <= limit {
			w.values[i] = 1
		}
	}
	return w.essOf(w.values)
}

// meanESS is the ESS for the mean.
func (w *workspace) meanESS() float64 { return w.essOf(w.split) }

// meanError is the Monte Carlo standard error of the mean: the standard deviation over sqrt(ESS).
func (w *workspace) meanError() float64 {
	_, variance := meanVariance(w.draws)
	return math.Sqrt(variance / w.meanESS())
}

// essOf is the ESS of half chains x, [halves, half], for their mean.
func (w *workspace) essOf(x []float64) float64 { return w.lags.Mean(x, w.half) }

package diag

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// MCSE is the Monte Carlo standard error of an estimate of a parameter, in the parameter's unit: of Mean, SD or a
// Quantile.
func (c *Chains) MCSE(parameter int, of Estimand) (float64, error) {
	if err := c.checkParameter("MCSE", parameter); err != nil {
		return 0, err
	}
	if err := of.check(); err != nil {
		return 0, err
	}
	if of == Bulk || of == Tail {
		return 0, fmt.Errorf("diag: Chains.MCSE of %v, which is not a single estimate: use Mean, SD or Quantile", of)
	}
	w := newWorkspace(c)
	w.load(parameter)
	switch of {
	case Mean:
		return w.meanError(), nil
	case SD:
		return w.sdError(), nil
	default:
		return w.quantileError(of.prob), nil
	}
}

// meanError is the standard deviation over sqrt(ESS).
func (w *workspace) meanError() float64 {
	_, variance := meanVariance(w.draws)
	return math.Sqrt(variance / w.ess(Mean))
}

// sdError uses the delta method. Let v be the mean of squared distances from the mean. Then var(sqrt(v)) = var(v) / (4
// v), and var(v) is the variance of these squares over their ESS (Kenney and Keeping 1951, Mathematics of Statistics,
// p. 141; no normality is assumed).
func (w *workspace) sdError() float64 {
	ess := w.ess(SD)
	squares := w.squares()
	v, spread := meanVariance(squares)
	size := float64(len(squares))
	return math.Sqrt(spread * (size - 1) / size / ess / v / 4)
}

// quantileError is half the distance between two draws: those at the ends of the central 68 % interval of the
// probability that lies below the quantile, which is Beta(ESS p + 1, ESS (1-p) + 1) (Vehtari et al. 2021, section 4.4).
// It takes no density estimate.
func (w *workspace) quantileError(prob float64) float64 {
	const below, above = 0.1586553, 0.8413447 // Phi(-1) and Phi(1)
	ess, size := w.quantileESS(prob), float64(len(w.sorted))
	a, b := ess*prob+1, ess*(1-prob)+1
	low := math.Floor(max(0, mathext.InvRegIncBeta(a, b, below)*size-1))
	high := math.Ceil(min(size-1, mathext.InvRegIncBeta(a, b, above)*size-1))
	return (w.sorted[int(high)] - w.sorted[int(low)]) / 2
}

package diag

import (
	"errors"
	"fmt"
	"math"
)

// Estimand is what an effective sample size or a Monte Carlo standard error is of.
type Estimand struct {
	kind estimandKind
	prob float64
}

type estimandKind string

const (
	ofBulk     estimandKind = "bulk"
	ofTail     estimandKind = "tail"
	ofMean     estimandKind = "mean"
	ofSD       estimandKind = "sd"
	ofQuantile estimandKind = "quantile"
)

// The estimands beside quantiles.
var (
	Bulk = Estimand{kind: ofBulk} // the centre of the distribution, by normal scores of the ranks
	Tail = Estimand{kind: ofTail} // the worse of the 5 % and the 95 % quantile
	Mean = Estimand{kind: ofMean}
	SD   = Estimand{kind: ofSD}
)

// Quantile is the estimand of the quantile at a probability, strictly between 0 and 1. That of the median is
// Quantile(0.5).
func Quantile(prob float64) Estimand { return Estimand{ofQuantile, prob} }

func (e Estimand) String() string {
	if e.kind == ofQuantile {
		return fmt.Sprintf("quantile(%v)", e.prob)
	}
	return string(e.kind)
}

func (e Estimand) check() error {
	switch e.kind {
	case ofBulk, ofTail, ofMean, ofSD:
		return nil
	case ofQuantile:
		if !(e.prob > 0 && e.prob < 1) {
			return fmt.Errorf("diag: the quantile at %v: a probability must lie between 0 and 1", e.prob)
		}
		return nil
	}
	return errors.New("diag: an empty Estimand: use Bulk, Tail, Mean, SD or Quantile")
}

// ESS is the effective sample size of a parameter for an estimand (Vehtari et al. 2021, sections 3.2 and 4.3): of S
// draws in all chains it is at most S log10(S).
func (c *Chains) ESS(parameter int, of Estimand) (float64, error) {
	if err := c.checkParameter("ESS", parameter); err != nil {
		return 0, err
	}
	if err := of.check(); err != nil {
		return 0, err
	}
	w := newWorkspace(c)
	w.load(parameter)
	return w.ess(of), nil
}

func (w *workspace) ess(of Estimand) float64 {
	switch of.kind {
	case ofBulk:
		return w.essOf(w.normalScores(w.byValue, w.values))
	case ofTail:
		return min(w.quantileESS(0.05), w.quantileESS(0.95))
	case ofMean:
		return w.essOf(w.split)
	case ofSD:
		w.halve(w.squares(), w.values)
		return w.essOf(w.values)
	default:
		return w.quantileESS(of.prob)
	}
}

// squares are the squared distances of the draws from their mean, [Chains, Draws].
func (w *workspace) squares() []float64 {
	centre, _ := meanVariance(w.draws)
	for i, v := range w.draws {
		w.whole[i] = (v - centre) * (v - centre)
	}
	return w.whole
}

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

// essOf is the ESS of half chains x, [halves, half], for their mean: M N / tau, where M N is the number of draws and
//
//	tau = -1 + 2 sum_k P_k,  P_k = rho_{2k} + rho_{2k+1},
//
// rho_t being the autocorrelation at lag t of all chains together, 1 - (W - mean_m acov_m(t)) / var+ (Vehtari et al.
// 2021, section 3.2). The sum ends before the first negative P_k (Geyer's initial positive sequence; these sums of
// neighbours are positive for a reversible chain, so a negative one is noise), and P_k is kept from rising (his
// monotone sequence). tau is at least 1 / log10(M N).
func (w *workspace) essOf(x []float64) float64 {
	low, high := x[0], x[0]
	for _, v := range x {
		low, high = min(low, v), max(high, v)
	}
	if high-low < 1e-15 {
		return float64(len(x))
	}
	n := w.half
	within, total := w.lags.load(x, n) // W and var+
	rho := func(lag int) float64 { return 1 - (within-w.lags.at(lag))/total }

	// kept are rho_0, rho_1, ...: whole pairs, the last of which may be followed by one term.
	even, odd := 1.0, rho(1)
	kept := []float64{even, odd}
	lag := 1
	for lag < n-3 && even+odd > 0 {
		even, odd = rho(lag+1), rho(lag+2)
		if even+odd >= 0 {
			kept = append(kept, even, odd)
		} else {
			kept = append(kept, 0, 0)
		}
		lag += 2
	}
	// Of the last pair only the first term is kept, if positive, and counts once: the pair's sum is negative, or its
	// second lag does not exist.
	last := len(kept) - 2
	if even > 0 {
		kept[last] = even
	}
	for k := 2; k+1 < last; k += 2 {
		if before := kept[k-2] + kept[k-1]; kept[k]+kept[k+1] > before {
			kept[k], kept[k+1] = before/2, before/2
		}
	}
	tau := -1 + kept[last]
	for _, r := range kept[:last] {
		tau += 2 * r
	}
	size := float64(len(x))
	return size / max(tau, 1/math.Log10(size))
}

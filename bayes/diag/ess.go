package diag

import (
	"errors"
	"fmt"
)

// Estimand is the quantity whose effective sample size or Monte Carlo standard error is computed: Bulk, Tail, Mean, SD
// or a Quantile.
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

// The estimands other than quantiles.
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

// squares returns the squared distances of the draws from their mean, [Chains, Draws].
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

// essOf is the ESS of half chains x, [halves, half], for their mean.
func (w *workspace) essOf(x []float64) float64 { return w.lags.Mean(x, w.half) }

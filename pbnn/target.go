package pbnn

import (
	"cmp"
	"fmt"
	"math"
)

// Target is a distribution that is sampled: exp(-loss), where loss is one of the paper's. It says what the draws mean, and a Result carries it. The four are types, and each
// sampler takes those that it can sample, so that one cannot be given the other: TargetFull and TargetExpected are known from mini-batches, TargetFullData and
// TargetTempered from all rows.
type Target interface {
	fmt.Stringer
	// Points is how many points' likelihood the posterior holds, for data of N rows.
	EffectivePoints(rows int) float64
	check(rows int) error
}

// FromMiniBatches is a Target whose loss mini-batches of n of the N rows estimate without bias: TargetFull or TargetExpected.
type FromMiniBatches interface {
	Target
	// fixed is the same target for mini-batches of n rows.
	fixed(batch int) FromMiniBatches
}

// FromAllRows is a Target that takes all rows to evaluate: TargetFullData or TargetTempered.
type FromAllRows interface {
	Target
	allRows()
}

// TargetFull is the posterior given all N rows, by the estimate of its loss (eq. 5)
//
//	L^N_n(theta) = -log p(theta) - (N/n) sum_{i <= n} log p(y_i | x_i, theta)
//
// whose mean over mini-batches is L^N, -log p(theta | D) (sections 4.1 and 4.2).
type TargetFull struct{}

// TargetExpected is the posterior that n points give in the mean (section 4.3, eq. 18 to 22), by the loss of one mini-batch without the factor N/n:
//
//	L_n(theta) = -log p(theta) - sum_{i <= n} log p(y_i | x_i, theta)
//
// The mini-batch's size n is part of the target: few points give a wide predictive distribution, many a narrow one, which calibrates it. With mini-batches from N rows
// that stay the same, the mean of L_n is -log p(theta) - (n/N) sum_{i <= N} log p(y_i | x_i, theta): what a right sampler finds is TargetTempered{Points: n},
// without looking at all rows. See the package comment for what the paper says of that.
type TargetExpected struct {
	// N is the number of points; default: the sampler's BatchSize, as in the paper. Set it where an adaptive sampler may change BatchSize.
	Points int `json:"n"`
}

// TargetFullData is the posterior given all rows, evaluated on all rows (eq. 1 and 2).
type TargetFullData struct{}

// TargetTempered is the posterior with the likelihood of all rows to the power Points/N ("Safe Bayes", eq. 8).
type TargetTempered struct {
	Points float64 `json:"n"` // the paper's n; above 0, may be above the number of rows
}

var (
	_ FromMiniBatches = TargetFull{}
	_ FromMiniBatches = TargetExpected{}
	_ FromAllRows     = TargetFullData{}
	_ FromAllRows     = TargetTempered{}
)

func (TargetFull) String() string { return "posterior given all rows, by mini-batches" }
func (t TargetExpected) String() string {
	return fmt.Sprintf("expected posterior of %d points", t.Points)
}
func (TargetFullData) String() string { return "posterior given all rows" }
func (t TargetTempered) String() string {
	return fmt.Sprintf("posterior tempered to %g points", t.Points)
}

// Points implements Target: N.
func (TargetFull) EffectivePoints(rows int) float64 { return float64(rows) }

// Points implements Target: n.
func (t TargetExpected) EffectivePoints(int) float64 { return float64(t.Points) }

// Points implements Target: N.
func (TargetFullData) EffectivePoints(rows int) float64 { return float64(rows) }

// Points implements Target: n.
func (t TargetTempered) EffectivePoints(int) float64 { return t.Points }

func (t TargetFull) fixed(int) FromMiniBatches       { return t }
func (t TargetExpected) fixed(n int) FromMiniBatches { t.Points = cmp.Or(t.Points, n); return t }

func (TargetFullData) allRows() {}
func (TargetTempered) allRows() {}

func (TargetFull) check(int) error     { return nil }
func (TargetFullData) check(int) error { return nil }

func (t TargetExpected) check(int) error {
	if t.Points < 1 {
		return fmt.Errorf("pbnn: TargetExpected.N is %d: it must be at least 1 (0: the mini-batch's size)", t.Points)
	}
	return nil
}

func (t TargetTempered) check(int) error {
	if !(t.Points > 0) || math.IsInf(t.Points, 1) {
		return fmt.Errorf("pbnn: TargetTempered.N is %v: it must be positive and finite, the number of points whose likelihood counts", t.Points)
	}
	return nil
}

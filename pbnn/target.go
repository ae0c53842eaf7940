package pbnn

import (
	"cmp"
	"fmt"
	"math"
)

// Target is the distribution that a Sampler samples: prior times likelihood, where the likelihood of the N rows counts
// as that of so many points,
//
//	p(theta) prod_{i <= N} p(y_i | x_i, theta)^(EffectivePoints / N)
//
// It says what the draws mean, and a Result carries it. A Sampler takes those that it can sample, so that one cannot be
// given the other: a FromMiniBatches is known from mini-batches, a FromAllRows from all rows. A target of your own
// implements one of the two.
type Target interface {
	// String names it in results and errors: two that differ must have different names.
	fmt.Stringer
	// EffectivePoints is how many points' likelihood the distribution holds, for data of N rows: positive and finite.
	EffectivePoints(rows int) float64
	// Check returns an error that says what is wrong with its settings, for data of N rows.
	Check(rows int) error
}

// FromMiniBatches is a Target whose loss mini-batches of n of the N rows estimate without bias: TargetFull,
// TargetExpected, or one of your own.
type FromMiniBatches interface {
	Target
	// ForBatchSize is the same target, with what it leaves to the sampler filled in by its mini-batches' n.
	ForBatchSize(n int) FromMiniBatches
}

// FromAllRows is a Target that takes all rows to evaluate: TargetFullData, TargetTempered, or one of your own.
type FromAllRows interface {
	Target
	// OfAllRows marks it.
	OfAllRows()
}

// TargetFull is the posterior given all N rows, by the estimate of its loss (eq. 5)
//
//	L^N_n(theta) = -log p(theta) - (N/n) sum_{i <= n} log p(y_i | x_i, theta)
//
// whose mean over mini-batches is L^N, -log p(theta | D) (sections 4.1 and 4.2).
type TargetFull struct{}

// TargetExpected is the posterior that a number of points gives in the mean (section 4.3, eq. 18 to 22), by the loss of
// one mini-batch without the factor N/n:
//
//	L_n(theta) = -log p(theta) - sum_{i <= n} log p(y_i | x_i, theta)
//
// The number of points is part of the target: few give a wide predictive distribution, many a narrow one, which
// calibrates it. In the paper it is the mini-batch's size n. With mini-batches from N rows that stay the same, the mean
// of L_n is -log p(theta) - (n/N) sum_{i <= N} log p(y_i | x_i, theta): what a right sampler finds is
// TargetTempered{Points: n}, without looking at all rows. See the package comment for what the paper says of that.
type TargetExpected struct {
	// Points is their number; default: the sampler's BatchSize n, as in the paper. Set it where an adaptive sampler may
	// change BatchSize.
	Points int `json:"points"`
}

// TargetFullData is the posterior given all rows, evaluated on all rows (eq. 1 and 2).
type TargetFullData struct{}

// TargetTempered is the posterior with the likelihood of all rows to the power Points/N ("Safe Bayes", eq. 8, where
// Points is called n).
type TargetTempered struct {
	Points float64 `json:"points"` // above 0, may be above the number of rows N
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

// EffectivePoints implements Target: N.
func (TargetFull) EffectivePoints(rows int) float64 { return float64(rows) }

// EffectivePoints implements Target: Points.
func (t TargetExpected) EffectivePoints(int) float64 { return float64(t.Points) }

// EffectivePoints implements Target: N.
func (TargetFullData) EffectivePoints(rows int) float64 { return float64(rows) }

// EffectivePoints implements Target: Points.
func (t TargetTempered) EffectivePoints(int) float64 { return t.Points }

// ForBatchSize implements FromMiniBatches: nothing is left to the sampler.
func (t TargetFull) ForBatchSize(int) FromMiniBatches { return t }

// ForBatchSize implements FromMiniBatches: Points is n by default.
func (t TargetExpected) ForBatchSize(n int) FromMiniBatches {
	t.Points = cmp.Or(t.Points, n)
	return t
}

// OfAllRows implements FromAllRows.
func (TargetFullData) OfAllRows() {}

// OfAllRows implements FromAllRows.
func (TargetTempered) OfAllRows() {}

// Check implements Target.
func (TargetFull) Check(int) error { return nil }

// Check implements Target.
func (TargetFullData) Check(int) error { return nil }

// Check implements Target.
func (t TargetExpected) Check(int) error {
	if t.Points < 1 {
		return fmt.Errorf("pbnn: TargetExpected.Points is %d: it must be at least 1 (0: the mini-batch's size)", t.Points)
	}
	return nil
}

// Check implements Target.
func (t TargetTempered) Check(int) error {
	if !(t.Points > 0) || math.IsInf(t.Points, 1) {
		return fmt.Errorf("pbnn: TargetTempered.Points is %v: it must be positive and finite, the number of points whose "+
			"likelihood counts", t.Points)
	}
	return nil
}

package pbnn

import (
	"cmp"
	"fmt"
)

// Target is the distribution that a Sampler samples. It is the prior times the likelihood of the N rows, raised to a
// power so that it counts as much as EffectivePoints points:
//
//	p(theta) prod_{i <= N} p(y_i | x_i, theta)^(EffectivePoints / N)
//
// AllRows evaluates any on all rows. The other samplers take a FromMiniBatches, which mini-batches estimate. The
// posterior's provenance names the target.
type Target interface {
	// String names it in results and errors: different targets must have different names.
	fmt.Stringer
	// EffectivePoints is the number of points that the likelihood counts for, given data of N rows. It is an error of
	// Prepare if it is not positive and finite, as where a setting is wrong.
	EffectivePoints(rows int) float64
}

// FromMiniBatches is a Target whose loss mini-batches of n of the N rows estimate without bias: TargetFull,
// TargetExpected, or one of your own.
type FromMiniBatches interface {
	Target
	// ForBatchSize returns the target with the defaults filled in that depend on the sampler's mini-batch size n.
	ForBatchSize(n int) FromMiniBatches
}

// TargetFull is the posterior given all N rows, by the estimate of its loss (eq. 5)
//
//	L^N_n(theta) = -log p(theta) - (N/n) sum_{i <= n} log p(y_i | x_i, theta)
//
// whose mean over mini-batches is L^N, -log p(theta | D) (sections 4.1 and 4.2).
type TargetFull struct{}

// TargetExpected is the expected posterior of a number of points (section 4.3, eq. 18 to 22). Its loss on a mini-batch
// lacks the factor N/n:
//
//	L_n(theta) = -log p(theta) - sum_{i <= n} log p(y_i | x_i, theta)
//
// The number of points is part of the target: few give a wide predictive distribution, many a narrow one, so that it
// can be chosen to calibrate the predictions. In the paper it is the mini-batch's size n. For mini-batches drawn from
// the same N rows, the mean of L_n is -log p(theta) - (n/N) sum_{i <= N} log p(y_i | x_i, theta). So an exact sampler
// converges to TargetTempered{Points: n}, without evaluating all rows. The package comment has the paper's view of
// this.
type TargetExpected struct {
	// Points is the number of points, at least 1; default: the sampler's BatchSize n, as in the paper. It stays the same
	// if Metropolis.Noise raises BatchSize.
	Points int `json:"points"`
}

// TargetFullData is the posterior given all rows, evaluated on all rows (eq. 1 and 2).
type TargetFullData struct{}

// TargetTempered is the posterior with the likelihood of all rows to the power Points/N ("Safe Bayes", eq. 8, where
// Points is called n).
type TargetTempered struct {
	Points float64 `json:"points"` // above 0 and finite, may be above the number of rows N
}

var (
	_ FromMiniBatches = TargetFull{}
	_ FromMiniBatches = TargetExpected{}
	_ Target          = TargetFullData{}
	_ Target          = TargetTempered{}
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

// ForBatchSize implements FromMiniBatches: there are no settings.
func (t TargetFull) ForBatchSize(int) FromMiniBatches { return t }

// ForBatchSize implements FromMiniBatches: Points is n by default.
func (t TargetExpected) ForBatchSize(n int) FromMiniBatches {
	t.Points = cmp.Or(t.Points, n)
	return t
}

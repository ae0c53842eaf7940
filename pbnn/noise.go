package pbnn

import (
	"fmt"

	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
)

// Estimate says how delta, the estimate of the loss difference, and sigma^2, the variance of delta, are computed from
// the M differences
//
//	d_i = L_{n,i}(theta') - L_{n,i}(theta)
//
// of M mini-batches, where both losses are on mini-batch i.
type Estimate string

// The estimates.
const (
	// MeanOfBatches takes the mean of all d_i, and their sample variance over M (eq. 24 and 25), on M - 1 degrees of
	// freedom. It needs M >= 2. The default.
	MeanOfBatches Estimate = "mean of batches"
	// OneBatch takes d_1 alone, as eq. 12 and 21 do. Its variance is the sample variance of the other d_i (eq. 23), on M -
	// 2 degrees of freedom. It needs M >= 3. In the paper the sum of eq. 23 includes d_1, and deviations are from delta.
	// Here they are from the mean of the others, which makes the estimate unbiased, and independent of d_1 if differences
	// are Gaussian.
	OneBatch Estimate = "one batch"
	// WithinBatches takes the mean of all d_i. The rows within the mini-batches give its variance: their sample
	// variance gives the variance of a sum of n of N rows drawn without replacement, and so of a mean of M such sums.
	// The estimate has M (n - 1) degrees of freedom, many more than M - 1, and works with M = 1 too. It needs n >= 2.
	// It is not in the paper.
	WithinBatches Estimate = "within batches"
)

// check returns an error if the variance cannot be estimated from M mini-batches of n rows.
func (e Estimate) check(batches, size int) error {
	switch {
	case e == MeanOfBatches && batches < 2:
		return fmt.Errorf("pbnn: Batches is %d: one mini-batch has no variance between mini-batches: take at least 2, or "+
			"the Estimate WithinBatches", batches)
	case e == OneBatch && batches < 3:
		return fmt.Errorf("pbnn: Batches is %d: OneBatch takes the variance from the mini-batches after the first: take at "+
			"least 3, or the Estimate WithinBatches", batches)
	case e == WithinBatches && size < 2:
		return fmt.Errorf("pbnn: BatchSize is %d: one row has no variance within a mini-batch: take at least 2 rows, or "+
			"the Estimate MeanOfBatches", size)
	}
	return nil
}

// noisyDifference is an estimate of a loss difference for each particle.
type noisyDifference struct {
	delta    *graph.Node // [J]
	variance *graph.Node // [J]: sigma^2, of delta
	degrees  float64     // of freedom of sigma^2
	skewness *graph.Node // [J]: squared, of the sample of d_i; nil for M < 3
}

// of is the estimate from differences of the log-posterior, [J, M], and the variance of one of them by the rows within
// mini-batches, [J], with its degrees of freedom; nil if n is 1.
func (e Estimate) of(differences, within *graph.Node, degrees float64) noisyDifference {
	losses := graph.Neg(differences) // of the loss: d_i
	m := losses.Shape().Dim(1)
	skewness := squaredSkewness(losses)
	switch e {
	case OneBatch:
		first := graph.Squeeze(graph.Slice(losses, graph.AxisRange(), graph.AxisElem(0)), 1)
		_, variance := sample(graph.Slice(losses, graph.AxisRange(), graph.AxisRange(1)))
		return noisyDifference{first, variance, float64(m - 2), skewness} // eq. 23
	case WithinBatches:
		mean := graph.DivScalar(compute.RowSums(losses), float64(m))
		return noisyDifference{mean, graph.DivScalar(within, float64(m)), degrees, skewness}
	}
	mean, variance := sample(losses)
	return noisyDifference{mean, graph.DivScalar(variance, float64(m)), float64(m - 1), skewness} // eq. 24 and 25
}

// sample is the mean and the sample variance of each row, [J, M] to [J].
func sample(x *graph.Node) (mean, variance *graph.Node) {
	m := float64(x.Shape().Dim(1))
	mean = graph.DivScalar(compute.RowSums(x), m)
	deviations := graph.Sub(x, graph.BroadcastToShape(graph.ExpandAxes(mean, 1), x.Shape()))
	return mean, graph.DivScalar(compute.RowSums(graph.Square(deviations)), m-1)
}

// Rule is the acceptance probability, given a noisy estimate of the loss difference.
type Rule string

// The rules.
const (
	// Corrected takes exp(-delta - u). Its penalty u allows for s being an estimate of sigma^2 with f degrees of
	// freedom: u = s/2 + s^2/(4(f+2)) + s^3/(3(f+2)(f+4)), the first terms of a series of Ceperley and Dewing (1999;
	// for a variance estimated from k values f + 2 is k + 1). It is the series of -log E(s), where the function E has
	// the mean exp(-sigma^2/2) over the (scaled chi-squared) distribution of s. It holds for s well below f/4. The
	// default.
	Corrected Rule = "penalty, corrected for an estimated variance"
	// Penalty takes exp(-delta - s/2) (eq. 14): right where the variance is known, and the paper's choice.
	Penalty Rule = "penalty"
	// Naive takes exp(-delta), as if there were no noise (section 4.1): it samples too wide a distribution, and is here
	// for comparison.
	Naive Rule = "naive"
)

// Rules lists all.
func Rules() []Rule { return []Rule{Corrected, Penalty, Naive} }

// logRatio is the logarithm of the acceptance ratio without the proposal densities: -delta minus the penalty, [J].
func (r Rule) logRatio(n noisyDifference) *graph.Node {
	logRatio := graph.Neg(n.delta)
	if r == Naive {
		return logRatio
	}
	s := n.variance
	penalty := graph.MulScalar(s, 0.5)
	if r == Corrected {
		f := n.degrees
		square := graph.Square(s)
		penalty = graph.Add(penalty, graph.Add(
			graph.MulScalar(square, 1/(4*(f+2))),
			graph.MulScalar(graph.Mul(square, s), 1/(3*(f+2)*(f+4))),
		))
	}
	return graph.Sub(logRatio, penalty)
}

// Package stats is the arithmetic of several packages of bayes: medians, the effective sample size of chains, the test
// of Kolmogorov and Smirnov, and the quantiles of a mixture of distributions.
package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Median returns the median of at least one number. For an even number of values it is the lower of the two in the
// middle; it is NaN if one of them is. It leaves values as they are.
func Median(values []float64) float64 {
	return stat.Quantile(.5, stat.Empirical, slices.Sorted(slices.Values(values)), nil)
}

// Probabilities writes the probabilities of the classes 0, 1, ... to p.
func Probabilities(d Distribution, p []float64) {
	for c := range p {
		p[c] = math.Exp(d.LogProb(float64(c)))
	}
}

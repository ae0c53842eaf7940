package diag

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"

	"gonum.org/v1/gonum/floats"
)

// ErrNoTail says that there is no tail to fit a Pareto distribution to: too few draws, or equal values in the tail.
var ErrNoTail = errors.New("diag: no tail to fit")

// minTail is the least number of draws in a tail: of fewer the first quartile is the smallest value.
const minTail = 6

// Smoothed is the result of [PSIS].
type Smoothed struct {
	// KHat is the shape of the tail. It is +Inf if a quarter of the tail weighs nothing beside the largest weight, as
	// where one draw has all the weight. LogWeights are then the given ones.
	KHat float64
	// LogWeights are normalised, [J]: the largest Tail of them replaced by the expected order statistics of the fit, none
	// above the largest one given.
	LogWeights bayes.LogWeights
	Tail       int // how many weights the fit used
}

// PSIS is Pareto smoothed importance sampling (Vehtari et al. 2024, in the form of the R package posterior and of
// arviz-stats 1.3). It fits a generalised Pareto distribution to the largest weights, and replaces them by quantiles of
// the fit. This removes much variance for a little bias. The shape, KHat, says how reliable estimates are.
//
// relativeEfficiency is ESS / J of the particles before weighting, and is 1 for independent ones; with more than 225
// effective draws the tail holds the 3 sqrt(J / relativeEfficiency) largest weights, else a fifth of all. The error
// wraps ErrNoTail if that is less than 6, or if the tail's weights or the smallest quarter of them are equal, as after
// resampling. Of equal log-weights the one with the larger index takes the larger quantile.
func PSIS(w bayes.LogWeights, relativeEfficiency float64) (Smoothed, error) {
	if !(relativeEfficiency > 0) || math.IsInf(relativeEfficiency, 1) {
		return Smoothed{}, fmt.Errorf("diag: PSIS with relative efficiency %v: it must be positive, and is 1 for "+
			"independent draws", relativeEfficiency)
	}
	size, logWeights := len(w), slices.Clone(w)
	tail := tailLength(size, relativeEfficiency)
	if tail < minTail || tail >= size {
		return Smoothed{}, fmt.Errorf("%w: of %d weights with relative efficiency %v the tail holds %d: it must hold at "+
			"least %d, and fewer than all; "+
			"take at least 30 draws", ErrNoTail, size, relativeEfficiency, tail, minTail)
	}
	floats.AddConst(-floats.Max(logWeights), logWeights)
	byWeight := make([]int, size)
	for j := range byWeight {
		byWeight[j] = j
	}
	slices.SortFunc(byWeight, func(a, b int) int { return cmp.Or(cmp.Compare(logWeights[a], logWeights[b]), a-b) })
	cutoff := math.Exp(logWeights[byWeight[size-tail-1]])
	largest := byWeight[size-tail:]
	if logWeights[largest[0]] == 0 { // the very largest is 0
		return Smoothed{}, fmt.Errorf("%w: the %d largest of %d weights are equal", ErrNoTail, tail, size)
	}
	excess := make([]float64, tail)
	for i, j := range largest {
		excess[i] = math.Exp(logWeights[j]) - cutoff
	}
	k, sigma := fitPareto(excess)
	if math.IsNaN(k) { // the lowest quarter is one value
		lowest := logWeights[largest[firstQuartile(tail)]]
		if math.Exp(lowest) > epsilon {
			return Smoothed{}, fmt.Errorf("%w: %d of the %d largest of %d weights are equal, %.3g of the largest", ErrNoTail,
				firstQuartile(tail)+1, tail, size, math.Exp(lowest))
		}
		k = math.Inf(1) // as of ever smaller weights there
	}
	if sigma > 0 {
		for i, j := range largest {
			fitted := cutoff + paretoQuantile((float64(i)+0.5)/float64(tail), k, sigma)
			logWeights[j] = min(math.Log(fitted), 0)
		}
	}
	w, err := bayes.NewLogWeights(logWeights)
	if err != nil {
		return Smoothed{}, fmt.Errorf("diag: PSIS: smoothing %d weights: %w", size, err)
	}
	return Smoothed{KHat: k, LogWeights: w, Tail: tail}, nil
}

// tailLength is the number of draws that the fit uses (Vehtari et al. 2024, appendix H).
func tailLength(draws int, relativeEfficiency float64) int {
	size := float64(draws)
	if size*relativeEfficiency > 225 {
		return int(3 * math.Sqrt(size/relativeEfficiency))
	}
	return draws / 5
}

// fitPareto fits a generalised Pareto distribution, of shape k and scale sigma, to a sorted sample of excesses over a
// threshold (Zhang and Stephens 2009). b = -k/sigma is estimated by its mean over a grid, weighted by the profile
// likelihood and a prior that depends on the sample. k is then shrunk to 0.5 with the weight of 10 observations
// (Vehtari et al. 2024). Both are NaN if the first quartile is no larger than the minimum; k is +Inf if the likelihood
// cannot be evaluated.
func fitPareto(x []float64) (k, sigma float64) {
	n := float64(len(x))
	quartile, largest := x[firstQuartile(len(x))], x[len(x)-1]
	if quartile <= x[0] {
		return math.NaN(), math.NaN()
	}
	grid := 30 + int(math.Sqrt(n))
	b, logLikelihood := make([]float64, grid), make([]float64, grid)
	for i := range b {
		b[i] = 1/largest + (1-math.Sqrt(float64(grid)/(float64(i)+0.5)))/(3*quartile)
		shape := meanLog(x, b[i])
		logLikelihood[i] = n * (math.Log(-b[i]/shape) - shape - 1)
	}
	logSum, weight, mean := floats.LogSumExp(logLikelihood), 0.0, 0.0
	for i, l := range logLikelihood {
		if p := math.Exp(l - logSum); p >= 10*epsilon {
			weight += p
			mean += p * b[i]
		}
	}
	mean /= weight
	k = meanLog(x, mean)
	sigma = -k / mean
	const observations, shape = 10, 0.5
	k = (n*k + observations*shape) / (n + observations)
	if math.IsNaN(k) {
		return math.Inf(1), math.NaN()
	}
	return k, sigma
}

// firstQuartile is the place of the first quartile in a sorted sample of that size.
func firstQuartile(size int) int { return int(float64(size)/4+0.5) - 1 }

const epsilon = 0x1p-52

// meanLog is the mean of log(1 - b x), the maximum likelihood estimate of k given b. It takes one logarithm of a
// product of factors, as many as stay within the range of floating point.
func meanLog(x []float64, b float64) float64 {
	sum, product := 0.0, 1.0
	for _, v := range x {
		product *= 1 - b*v
		if !(product > 1e-150 && product < 1e150) {
			sum += math.Log(product)
			product = 1
		}
	}
	return (sum + math.Log(product)) / float64(len(x))
}

// paretoQuantile of the generalised Pareto distribution, of positive sigma.
func paretoQuantile(prob, k, sigma float64) float64 {
	if k == 0 {
		return -sigma * math.Log1p(-prob)
	}
	return sigma * math.Expm1(-k*math.Log1p(-prob)) / k
}

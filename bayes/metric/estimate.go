package metric

import (
	"fmt"
	"math"
)

// Estimate is a score with the standard errors that the package comment explains.
type Estimate struct {
	Value float64
	// StdErr is the Monte Carlo standard error, due to the finite number of particles; NaN with one particle. It is 0 if
	// the score does not change without the particles of any group, for instance a coverage without a target near the end
	// of an interval.
	StdErr float64
	// SamplingStdErr is the standard error due to the finite number of rows, which are taken to be independent. It is NaN
	// with one row, for ECE, and for means of particles' own scores. For accuracy and coverage it is positive even at 0
	// and 1.
	SamplingStdErr float64
}

// String is "0.112 ± 0.003": the value and its Monte Carlo standard error, which is rounded to one significant digit,
// or two if the first is a 1; the value has as many decimals.
func (e Estimate) String() string {
	const maxDecimals = 6 // that are printed, however small the standard error
	value, se := e.Value, e.StdErr
	if !(se > 0) || math.IsInf(se, 1) { // 0, NaN or infinite
		return fmt.Sprintf("%.4g ± %g", value, se)
	}
	decimals := digits(se)
	if decimals <= maxDecimals {
		return fmt.Sprintf("%.*f ± %.*f", decimals, value, decimals, se)
	}
	if math.Abs(value) < 1e-3 {
		exponent := math.Floor(math.Log10(math.Max(math.Abs(value), se)))
		unit := math.Pow(10, exponent)
		decimals = min(digits(se/unit), maxDecimals)
		return fmt.Sprintf("(%.*f ± %.*f)e%+03d", decimals, value/unit, decimals, se/unit, int(exponent))
	}
	return fmt.Sprintf("%.*f ± %.1g", maxDecimals, value, se)
}

// digits returns the number of decimals that show se > 0 to one significant digit, or to two if the first is a 1.
func digits(se float64) int {
	magnitude := math.Floor(math.Log10(se))
	if math.Round(se/math.Pow(10, magnitude)*10) < 20 {
		magnitude--
	}
	return max(0, int(-magnitude))
}

// jackknife is the standard error from the G replicates of a score, by the package comment's formula for plain or for
// stretched ones.
func jackknife(replicates []float64, stretched bool) float64 {
	if len(replicates) < 2 {
		return math.NaN()
	}
	g := float64(len(replicates))
	mean, sum := replicates[0], 0.0 // relative to the first, so that equal values give exactly 0
	for _, t := range replicates {
		mean += (t - replicates[0]) / g
	}
	for _, t := range replicates {
		sum += (t - mean) * (t - mean)
	}
	if stretched {
		return math.Sqrt(sum / g)
	}
	return math.Sqrt(sum * (g - 1) / g)
}

// stretch multiplies the deviations of the replicates x[1:] from their mean by sqrt(G-1) and centres them on x[0], the
// value by all particles. x is [1+G].
func stretch(x []float64) {
	replicates := x[1:]
	mean := 0.0
	for _, v := range replicates {
		mean += v / float64(len(replicates))
	}
	factor := math.Sqrt(float64(len(replicates) - 1))
	for g, v := range replicates {
		replicates[g] = x[0] + factor*(v-mean)
	}
}

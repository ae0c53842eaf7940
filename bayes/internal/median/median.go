// Package median is the median, for the samplers' warm-ups, trials and warnings.
package median

import (
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Of is the median of numbers, of which there is at least one: of an even number of them the lower of the two in the
// middle, and NaN if one of them is. It leaves values as they are.
func Of(values []float64) float64 {
	return stat.Quantile(.5, stat.Empirical, slices.Sorted(slices.Values(values)), nil)
}

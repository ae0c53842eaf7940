package diag

import (
	"fmt"
	"math"

	"gobnn/bayes"
)

// WeightedMean is the mean of values, [J], under normalised weights of independent draws, sum_j w_j v_j, and its Monte
// Carlo standard error by the delta method, sqrt(sum_j w_j^2 (v_j - mean)^2) (Owen 2013, Monte Carlo theory, methods
// and examples, eq. 9.9). The standard error is meaningless if k-hat of the weights is above [KHatThreshold]: see
// [PSIS]. Values of particles of weight 0 are ignored; any other value that is not finite is an error that wraps
// errNonFinite.
func WeightedMean(values []float64, w bayes.LogWeights) (mean, stdErr float64, err error) {
	if len(values) != w.Len() {
		return 0, 0, fmt.Errorf("diag: %d values for %d weights", len(values), w.Len())
	}
	weights := w.Weights()
	for j, v := range values {
		if weights[j] == 0 {
			continue
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, 0, fmt.Errorf("%w: value %d is %v, and its weight %v", errNonFinite, j, v, weights[j])
		}
		mean += weights[j] * v
	}
	variance := 0.0
	for j, v := range values {
		if weights[j] > 0 {
			variance += weights[j] * weights[j] * (v - mean) * (v - mean)
		}
	}
	return mean, math.Sqrt(variance), nil
}

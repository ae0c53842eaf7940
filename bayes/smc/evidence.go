package smc

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// LogEvidence is the log of the mean of weights that are not normalised: log p(y) where particles are drawn from the
// prior and raw, [J], are their log-likelihoods. stdErr is its standard error by the delta method, the relative
// standard error of the mean weight, sqrt((J/ESS - 1) / (J - 1)); it means little once the effective sample size is a
// handful, and is NaN where J is 1. NaN and +Inf count as no weight, as in NewLogWeights. Where no particle has any
// weight, the value is -Inf and stdErr NaN.
//
// Normalised weights have lost the evidence: their mean is 1/J, whatever the data.
func LogEvidence(raw []float64) (value, stdErr float64) {
	w, err := NewLogWeights(raw)
	if err != nil {
		return math.Inf(-1), math.NaN()
	}
	var finite []float64
	for _, v := range raw {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			finite = append(finite, v)
		}
	}
	j := float64(len(raw))
	return floats.LogSumExp(finite) - math.Log(j), math.Sqrt(max(0, j/w.EffectiveSampleSize()-1) / (j - 1))
}

// GenealogyStdErr is the standard error of the log evidence from one run of J particles that were resampled so often.
// squares is sum_i G_i^2, where G_i is the normalised weight of all particles that descend from the first particle i.
// The relative variance of the evidence's estimate is estimated by
//
//	1 - (J/(J-1))^(r+1) (1 - sum_i G_i^2)
//
// after r resamplings (Lee and Whiteley 2018, eq. 7 at the last time; Chan and Lai 2013 have the same to first order):
// without resampling it is that of a mean of J weights. It holds for multinomial resampling, and is too large for the
// quieter schemes; it says nothing once all particles descend from a few.
func GenealogyStdErr(squares float64, particles, resamplings int) float64 {
	j := float64(particles)
	return math.Sqrt(max(0, 1-math.Pow(j/(j-1), float64(resamplings+1))*(1-squares)))
}

package bayes

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// ErrZeroWeights says that all particles have weight 0: the likelihood is 0, or not finite, at each of them.
var ErrZeroWeights = errors.New("smc: all weights are zero")

// LogWeights are the normalised log-weights of J particles, on the host: their exponentials sum to 1. They do not
// change.
type LogWeights struct {
	normalised []float64
}

// NewLogWeights normalises log-weights, [J]. NaN and +Inf count as -Inf, that is as weight 0.
// If no particle has a weight above 0, the error wraps ErrZeroWeights and holds the counts.
func NewLogWeights(logWeights []float64) (LogWeights, error) {
	w, nans := LogWeights{normalised: slices.Clone(logWeights)}, 0
	for i, v := range w.normalised {
		if math.IsNaN(v) || math.IsInf(v, 1) {
			w.normalised[i] = math.Inf(-1)
			nans++
		}
	}
	logSum := math.Inf(-1)
	if len(w.normalised) > 0 {
		logSum = floats.LogSumExp(w.normalised)
	}
	if math.IsInf(logSum, -1) {
		return LogWeights{}, fmt.Errorf("%w: of %d log-weights %d are NaN or +Inf, the others -Inf: the particles do not "+
			"explain the data at all; check the data's scale, use a smaller step or more particles",
			ErrZeroWeights, len(logWeights), nans)
	}
	if math.Abs(logSum) > 1e-12 { // so that weights from a file, normalised already, stay the same bit by bit
		for i := range w.normalised {
			w.normalised[i] -= logSum
		}
	}
	return w, nil
}

// Len is the number of particles J.
func (w LogWeights) Len() int { return len(w.normalised) }

// At is particle j's normalised log-weight.
func (w LogWeights) At(j int) float64 { return w.normalised[j] }

// All copies the normalised log-weights, [J].
func (w LogWeights) All() []float64 { return slices.Clone(w.normalised) }

// Weights returns the normalised weights, [J]; they sum to 1.
func (w LogWeights) Weights() []float64 {
	weights := make([]float64, len(w.normalised))
	for i, v := range w.normalised {
		weights[i] = math.Exp(v)
	}
	return weights
}

// EffectiveSampleSize is 1 / sum_j w_j^2 (Kong, Liu and Wong 1994): J for equal weights, 1 if one particle has all the
// weight.
func (w LogWeights) EffectiveSampleSize() float64 {
	sum := 0.0
	for _, v := range w.normalised {
		sum += math.Exp(2 * v)
	}
	return 1 / sum
}

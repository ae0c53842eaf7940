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

// LogWeights are the normalised log-weights of J particles, on the host: their exponentials sum to 1.
type LogWeights []float64

// NewLogWeights normalises log-weights, [J]. NaN and +Inf count as -Inf, that is as weight 0.
// If no particle has a weight above 0, the error wraps ErrZeroWeights and holds the counts.
func NewLogWeights(logWeights []float64) (LogWeights, error) {
	w, nans := LogWeights(slices.Clone(logWeights)), 0
	for i, v := range w {
		if math.IsNaN(v) || math.IsInf(v, 1) {
			w[i] = math.Inf(-1)
			nans++
		}
	}
	logSum := math.Inf(-1)
	if len(w) > 0 {
		logSum = floats.LogSumExp(w)
	}
	if math.IsInf(logSum, -1) {
		return nil, fmt.Errorf("%w: of %d log-weights %d are NaN or +Inf, the others -Inf: the particles do not "+
			"explain the data at all; check the data's scale, use a smaller step or more particles",
			ErrZeroWeights, len(logWeights), nans)
	}
	if math.Abs(logSum) > 1e-12 { // so that weights from a file, normalised already, stay the same bit by bit
		floats.AddConst(-logSum, w)
	}
	return w, nil
}

// Weights returns the normalised weights, [J]; they sum to 1.
func (w LogWeights) Weights() []float64 {
	weights := make([]float64, len(w))
	for i, v := range w {
		weights[i] = math.Exp(v)
	}
	return weights
}

// EffectiveSampleSize is 1 / sum_j w_j^2 (Kong, Liu and Wong 1994): J for equal weights, 1 if one particle has all the
// weight.
func (w LogWeights) EffectiveSampleSize() float64 {
	sum := 0.0
	for _, v := range w {
		sum += math.Exp(2 * v)
	}
	return 1 / sum
}

// Package predictive is the arithmetic of one row's predictive distribution: the log-density of each task's likelihood and the
// distribution function and quantiles of a mixture of Gaussians.
package predictive

import "math"

// LogNormal is log N(y; mean, stdDev^2).
func LogNormal(y, mean, stdDev float64) float64 {
	z := (y - mean) / stdDev
	return -0.5*z*z - math.Log(stdDev) - 0.5*math.Log(2*math.Pi)
}

// LogBernoulli is the log-probability of the class (0 or 1) where logit is that of class 1: minus softplus of the logit of the other.
func LogBernoulli(class int, logit float64) float64 {
	if class == 1 {
		logit = -logit
	}
	return -(math.Max(logit, 0) + math.Log1p(math.Exp(-math.Abs(logit))))
}

// LogCategorical is the log-probability of the class, whose logits are given: log-softmax.
func LogCategorical(class int, logits []float64) float64 {
	largest, sum := largestAndSum(logits)
	return logits[class] - largest - math.Log(sum)
}

// Probabilities writes the class probabilities to p: two of them for the single logit of a binary classification, else the softmax.
func Probabilities(logits, p []float64) {
	if len(logits) == 1 {
		p[0], p[1] = sigmoid(-logits[0]), sigmoid(logits[0])
		return
	}
	largest, sum := largestAndSum(logits)
	for c, l := range logits {
		p[c] = math.Exp(l-largest) / sum
	}
}

// largestAndSum is the largest logit and sum_c exp(logit_c - largest).
func largestAndSum(logits []float64) (largest, sum float64) {
	largest = math.Inf(-1)
	for _, l := range logits {
		largest = math.Max(largest, l)
	}
	for _, l := range logits {
		sum += math.Exp(l - largest)
	}
	return largest, sum
}

func sigmoid(x float64) float64 {
	if x < 0 {
		e := math.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}

// Package predictive is the arithmetic of one row's predictive distribution: class probabilities, and the distribution
// function and quantiles of a mixture.
package predictive

import "math"

// Distribution is bayes.Distribution.
type Distribution interface {
	Mean() float64
	Variance() float64
	LogProb(y float64) float64
	CDF(y float64) float64
	Survival(y float64) float64
	Quantile(p float64) float64
}

// Probabilities writes the probabilities of the classes 0, 1, ... to p.
func Probabilities(d Distribution, p []float64) {
	for c := range p {
		p[c] = math.Exp(d.LogProb(float64(c)))
	}
}

package stats

import (
	"math"
	"slices"
)

// Kolmogorov is the statistic of Kolmogorov and Smirnov, the greatest distance between the distribution function of
// draws and the one that they should have.
func Kolmogorov(draws []float64, cdf func(float64) float64) (distance float64) {
	n := float64(len(draws))
	for i, x := range slices.Sorted(slices.Values(draws)) {
		f := cdf(x)
		distance = max(distance, f-float64(i)/n, float64(i+1)/n-f)
	}
	return distance
}

// KolmogorovP is the asymptotic p-value of a greatest distance between distribution functions for n draws, with the
// correction of Stephens (1970) for finite n. Of two samples, of a and b draws, n is a b / (a + b).
func KolmogorovP(distance, n float64) float64 {
	if math.IsNaN(distance) {
		return 0
	}
	lambda := distance * (math.Sqrt(n) + .12 + .11/math.Sqrt(n))
	if lambda < .3 {
		return 1 // the series below is 1 to nine digits, but converges slowly
	}
	p := 0.0
	for k := 1.0; k < 100; k++ {
		p += 2 * math.Pow(-1, k-1) * math.Exp(-2*k*k*lambda*lambda)
	}
	return min(1, max(0, p))
}

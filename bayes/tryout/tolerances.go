package tryout

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// What trials allow, so that chance and rounding refuse no right part.
const (
	Error  = 2e-3 // of rounding in float32, relative and absolute
	Errors = 7    // standard errors: a mean is further off by chance in fewer than one of 10^9 trials
)

// near says whether two numbers are equal up to rounding in float32.
func near(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= Error*(1+math.Abs(b))
}

// AllNear says whether all numbers are equal up to rounding in float32.
func AllNear(a, b []float64) bool {
	for i := range a {
		if !near(a[i], b[i]) {
			return false
		}
	}
	return true
}

// Mean is the mean of numbers and its standard error.
func Mean(x []float64) (mean, stdErr float64) {
	mean, stdDev := stat.MeanStdDev(x, nil)
	return mean, stdDev / math.Sqrt(float64(len(x)))
}

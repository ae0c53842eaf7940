package dataset

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Scaler standardises features column by column: (x - Mean) / StdDev. Fit it on the training part only and apply it to every part.
type Scaler struct {
	Mean   []float64 `json:"mean"`    // [d]
	StdDev []float64 `json:"std_dev"` // [d], above 0
}

// FitScaler takes mean and population standard deviation (divisor N) of each column of x, [N, d]. A constant column gets StdDev 1, so that it
// becomes 0 and not NaN. x must be finite (see [Dataset.Validate]).
func FitScaler(x *mat.Dense) Scaler {
	n, dims := x.Dims()
	s := Scaler{Mean: make([]float64, dims), StdDev: make([]float64, dims)}
	column := make([]float64, n)
	for j := range dims {
		s.Mean[j], s.StdDev[j] = meanStdDev(mat.Col(column, j, x))
	}
	return s
}

// NoScaler leaves features, d of them, as they are.
func NoScaler(dims int) Scaler {
	return Scaler{Mean: make([]float64, dims), StdDev: slices.Repeat([]float64{1}, dims)}
}

// Apply standardises x, [M, d], into a new matrix. x must have as many columns as the scaler was fitted on.
func (s Scaler) Apply(x *mat.Dense) (*mat.Dense, error) {
	return s.each(x, func(v, mean, std float64) float64 { return (v - mean) / std })
}

// Undo turns standardised features, [M, d], back into raw units, as a new matrix: the inverse of Apply.
func (s Scaler) Undo(x *mat.Dense) (*mat.Dense, error) {
	return s.each(x, func(v, mean, std float64) float64 { return mean + std*v })
}

func (s Scaler) each(x *mat.Dense, f func(v, mean, std float64) float64) (*mat.Dense, error) {
	n, dims := x.Dims()
	if dims != len(s.Mean) || dims != len(s.StdDev) {
		return nil, fmt.Errorf("dataset: x is [%d, %d] but the scaler was fitted on %d columns: apply it to the same features", n, dims, len(s.Mean))
	}
	if n == 0 {
		return &mat.Dense{}, nil
	}
	out := mat.NewDense(n, dims, nil)
	for i := range n {
		from, to := x.RawRowView(i), out.RawRowView(i)
		for j, v := range from {
			to[j] = f(v, s.Mean[j], s.StdDev[j])
		}
	}
	return out, nil
}

// TargetScaler standardises a regression target: (y - Mean) / StdDev. TargetScaler{Mean: 0, StdDev: 1} leaves it as it is.
type TargetScaler struct {
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"std_dev"` // above 0
}

// FitTargetScaler takes mean and population standard deviation of y, [N], the training part's. A constant target gets StdDev 1. y must be finite.
func FitTargetScaler(y []float64) TargetScaler {
	mean, std := meanStdDev(y)
	return TargetScaler{Mean: mean, StdDev: std}
}

// Apply standardises y into a new slice.
func (s TargetScaler) Apply(y []float64) []float64 {
	out := make([]float64, len(y))
	for i, v := range y {
		out[i] = (v - s.Mean) / s.StdDev
	}
	return out
}

// Undo turns standardised targets back into raw units, as a new slice: the inverse of Apply. A standard deviation or an RMSE in
// standardised units is undone by StdDev alone.
func (s TargetScaler) Undo(y []float64) []float64 {
	out := make([]float64, len(y))
	for i, v := range y {
		out[i] = s.Mean + s.StdDev*v
	}
	return out
}

// meanStdDev is the mean and the population standard deviation, in two passes. Constant values are found by comparison: rounding in
// the mean would give them a standard deviation of some 1e-17, and dividing by that makes noise of them.
func meanStdDev(values []float64) (mean, std float64) {
	if len(values) == 0 {
		return 0, 1
	}
	constant := true
	for _, v := range values {
		mean += v
		constant = constant && v == values[0]
	}
	if constant {
		return values[0], 1
	}
	n := float64(len(values))
	mean /= n
	sum := 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sum / n)
}

package dataset

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Scaler standardises features, or the targets of a regression, column by column: (x - Mean) / StdDev. Fit it on the
// training part only and apply it to every part.
type Scaler struct {
	Mean   []float64 `json:"mean"`    // [d]
	StdDev []float64 `json:"std_dev"` // [d], above 0
	// Constant says which columns had a single value where the scaler was fitted, up to rounding: it is their Mean, and
	// their StdDev is 1. [d]; nil: none.
	Constant []bool `json:"constant,omitempty"`
}

// FitScaler takes mean and population standard deviation (divisor N) of each column of x, [N, d]. A constant column
// gets StdDev 1, so that it becomes 0 and not NaN. x must be finite and at most 1e150
// (see [Dataset.Validate]).
func FitScaler(x mat.Matrix) Scaler {
	n, dims := x.Dims()
	s := Scaler{Mean: make([]float64, dims), StdDev: make([]float64, dims)}
	column := make([]float64, n)
	for j := range dims {
		s.Mean[j], s.StdDev[j] = meanStdDev(mat.Col(column, j, x))
		if n > 0 && constant(floats.Min(column), floats.Max(column)) {
			s.markConstant(j)
		}
	}
	return s
}

func (s *Scaler) markConstant(column int) {
	if s.Constant == nil {
		s.Constant = make([]bool, len(s.Mean))
	}
	s.Constant[column] = true
}

// Differs says whether v is another value than the one that a constant column had; false for other columns.
func (s Scaler) Differs(column int, v float64) bool {
	if s.Constant == nil || !s.Constant[column] {
		return false
	}
	return !constant(min(v, s.Mean[column]), max(v, s.Mean[column]))
}

// Clone is a copy that shares no memory.
func (s Scaler) Clone() Scaler {
	return Scaler{slices.Clone(s.Mean), slices.Clone(s.StdDev), slices.Clone(s.Constant)}
}

// FitTargetScaler is FitScaler of y, [N, K] row-major: one column for each of K targets.
func FitTargetScaler(y []float64, targets int) Scaler {
	if len(y) == 0 {
		return NoScaler(targets)
	}
	return FitScaler(mat.NewDense(len(y)/targets, targets, y))
}

// NoScaler leaves features, d of them, as they are.
func NoScaler(dims int) Scaler {
	return Scaler{Mean: make([]float64, dims), StdDev: slices.Repeat([]float64{1}, dims)}
}

// IsIdentity says whether the scaler leaves all features as they are, as NoScaler does.
func (s Scaler) IsIdentity() bool {
	for j, mean := range s.Mean {
		if mean != 0 || s.StdDev[j] != 1 {
			return false
		}
	}
	return true
}

// Apply standardises x, [M, d], into a new matrix. x must have as many columns as the scaler was fitted on.
func (s Scaler) Apply(x mat.Matrix) (*mat.Dense, error) {
	n, dims := x.Dims()
	if dims != len(s.Mean) || dims != len(s.StdDev) {
		return nil,
			fmt.Errorf("dataset: x is [%d, %d] but the scaler was fitted on %d columns: apply it to the same features",
				n, dims, len(s.Mean))
	}
	if n == 0 {
		return &mat.Dense{}, nil
	}
	out := mat.NewDense(n, dims, nil)
	for i := range n {
		row := mat.Row(out.RawRowView(i), i, x)
		for j, v := range row {
			row[j] = (v - s.Mean[j]) / s.StdDev[j]
		}
	}
	return out, nil
}

// ApplyFlat standardises values, [M, d] row-major, into a new slice.
func (s Scaler) ApplyFlat(values []float64) []float64 {
	out := make([]float64, len(values))
	copy(out, values)
	s.applyTo(out)
	return out
}

// applyTo standardises values, [M, d] row-major, in place.
func (s Scaler) applyTo(values []float64) {
	for row := range slices.Chunk(values, max(1, len(s.Mean))) {
		for j, v := range row {
			row[j] = (v - s.Mean[j]) / s.StdDev[j]
		}
	}
}

// meanStdDev is the mean and the population standard deviation, in two passes. The standard deviation is 1 for values
// that are constant up to rounding, such as shares that sum to 1: dividing by one of about 1e-17 would turn rounding
// errors into noise.
func meanStdDev(values []float64) (mean, std float64) {
	if len(values) == 0 {
		return 0, 1
	}
	low, high := values[0], values[0]
	for _, v := range values {
		mean += v
		low, high = min(low, v), max(high, v)
	}
	if constant(low, high) {
		return values[0], 1
	}
	n := float64(len(values))
	mean /= n
	sum := 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	if sum > smallestSum {
		return mean, math.Sqrt(sum / n)
	}
	largest := 0.0 // squares underflow; those in units of the largest do not
	for _, v := range values {
		largest = max(largest, math.Abs(v-mean))
	}
	sum = 0
	for _, v := range values {
		sum += (v - mean) / largest * ((v - mean) / largest)
	}
	return mean, largest * math.Sqrt(sum/n)
}

// constant says whether values from low to high are constant up to rounding.
func constant(low, high float64) bool {
	return high-low <= constantWithin*max(math.Abs(low), math.Abs(high))
}

// constantWithin is the largest difference, relative to the largest value, of values that count as constant up to
// rounding.
const constantWithin = 1e-14

// smallestSum is the smallest sum of squared deviations with full precision: squares below 2e-308 lose digits, and
// below 5e-324 are 0, so that a column that is not constant would be divided by 0.
const smallestSum = 1e-290

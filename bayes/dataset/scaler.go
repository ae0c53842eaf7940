package dataset

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Scaler standardises features, or the targets of a regression, column by column: (x - Mean) / StdDev. Fit it on the
// training part only and apply it to every part.
type Scaler struct {
	Mean   []float64 `json:"mean"`    // [d]
	StdDev []float64 `json:"std_dev"` // [d], above 0
	// Constant says which columns had a single value where the scaler was fitted, up to rounding: it is their Mean, and
	// their StdDev is 1. [d]; nil: none.
	Constant []bool `json:"constant,omitempty"`
	// Curves are of columns that are not standardised but replaced by the normal scores of their ranks, see
	// [FitNormalScores]: points of the curve from a value to its score. [d]; empty for the other columns, nil if none.
	Curves []Curve `json:"curves,omitempty"`
}

// Curve is a function that rises from point to point along straight lines, and beyond them as the logarithm of the
// distance. The values of its points rise too.
type Curve []struct{ Value, Score float64 }

// at is the curve's score of a value.
func (c Curve) at(v float64) float64 {
	first, last := c[0], c[len(c)-1]
	span := last.Value - first.Value
	switch i := sort.Search(len(c), func(i int) bool { return c[i].Value >= v }); {
	case v < first.Value:
		return first.Score - math.Log1p((first.Value-v)/span)
	case i == len(c):
		return last.Score + math.Log1p((v-last.Value)/span)
	case i == 0:
		return first.Score
	default:
		a, b := c[i-1], c[i]
		return a.Score + (b.Score-a.Score)*((v-a.Value)/(b.Value-a.Value))
	}
}

// CheckCurves is an error unless the scaler has no curves, or one for each of d columns, that rise as they should.
func (s Scaler) CheckCurves(d int) error {
	if len(s.Curves) != 0 && len(s.Curves) != d {
		return fmt.Errorf("there are %d curves of %d columns", len(s.Curves), d)
	}
	for j, c := range s.Curves {
		for i, p := range c {
			if !(math.Abs(p.Value) <= maxMagnitude && math.Abs(p.Score) <= maxMagnitude) || len(c) < 2 ||
				i > 0 && !(p.Value > c[i-1].Value && p.Score >= c[i-1].Score) {
				return fmt.Errorf("point %d of column %d's curve is (%v, %v): there must be at least 2 points, finite, whose "+
					"values and scores rise", i, j, p.Value, p.Score)
			}
		}
	}
	return nil
}

// The columns that FitNormalScores replaces, and the points of their curves at most.
const (
	skewed       = 1.5
	fewestValues = 11
	mostlyOne    = .8 // the share of rows of one value in a column that stays as it is
	mostPoints   = 100
)

// FitNormalScores is FitScaler, but a column whose skewness is beyond 1.5, and that has more than ten values, becomes
// the normal scores of its ranks in x: value number k of n, in order, gets the standard normal's quantile (k - 1/2)/n,
// equal values the mean of theirs, scaled to variance 1. One of which four fifths are one value, such as 0, stays as it
// is. Of amounts, counts and waiting times a network then sees the many small values as well apart as the few large
// ones. There are at most 100 points, and lines between them.
func FitNormalScores(x mat.Matrix) Scaler {
	s := FitScaler(x)
	n, dims := x.Dims()
	column := make([]float64, n)
	for j := range dims {
		mat.Col(column, j, x)
		if s.Constant != nil && s.Constant[j] || !(math.Abs(stat.Skew(column, nil)) > skewed) {
			continue
		}
		slices.Sort(column)
		if curve := normalScores(column); len(curve) > 0 {
			if s.Curves == nil {
				s.Curves = make([]Curve, dims)
			}
			s.Curves[j] = curve
		}
	}
	return s
}

// normalScores is the curve of sorted values; nil if there are too few, or four fifths are one value.
func normalScores(sorted []float64) Curve {
	n := len(sorted)
	var all Curve
	squares, most := 0., 0 // most: rows of one value
	for from := 0; from < n; {
		to, sum := from, 0.
		for ; to < n && sorted[to] == sorted[from]; to++ {
			sum += distuv.UnitNormal.Quantile((float64(to) + .5) / float64(n))
		}
		score := sum / float64(to-from)
		squares += score * score * float64(to-from)
		all = append(all, struct{ Value, Score float64 }{sorted[from], score})
		most = max(most, to-from)
		from = to
	}
	if len(all) < fewestValues || float64(most) > mostlyOne*float64(n) {
		return nil
	}
	if len(all) > mostPoints { // points about equally far apart in their scores
		first, last := all[0].Score, all[len(all)-1].Score
		some := all[:1:1]
		for i := 1; i < mostPoints; i++ {
			score := first + (last-first)*float64(i)/(mostPoints-1)
			at := sort.Search(len(all)-1, func(k int) bool { return all[k].Score >= score })
			if all[at].Value > some[len(some)-1].Value {
				some = append(some, all[at])
			}
		}
		all = some
	}
	for i := range all {
		all[i].Score /= math.Sqrt(squares / float64(n))
	}
	return all
}

// at is value v of column j, standardised.
func (s Scaler) at(j int, v float64) float64 {
	if s.Curves != nil && len(s.Curves[j]) > 0 {
		return s.Curves[j].at(v)
	}
	return (v - s.Mean[j]) / s.StdDev[j]
}

// FitScaler takes mean and population standard deviation (divisor N) of each column of x, [N, d]. A constant column
// gets StdDev 1, so that it becomes 0 and not NaN. x must be finite and at most 1e150
// (see [Dataset.Validate]).
func FitScaler(x mat.Matrix) Scaler {
	n, dims := x.Dims()
	s := Scaler{Mean: make([]float64, dims), StdDev: make([]float64, dims)}
	column := make([]float64, n)
	for j := range dims {
		var same bool
		if s.Mean[j], s.StdDev[j], same = meanStdDev(mat.Col(column, j, x)); same {
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
	c := Scaler{slices.Clone(s.Mean), slices.Clone(s.StdDev), slices.Clone(s.Constant), slices.Clone(s.Curves)}
	for j, curve := range c.Curves {
		c.Curves[j] = slices.Clone(curve)
	}
	return c
}

// NoScaler leaves features, d of them, as they are.
func NoScaler(dims int) Scaler {
	return Scaler{Mean: make([]float64, dims), StdDev: slices.Repeat([]float64{1}, dims)}
}

// IsIdentity says whether the scaler leaves all features as they are, as NoScaler does.
func (s Scaler) IsIdentity() bool {
	if s.Curves != nil {
		return false
	}
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
			row[j] = s.at(j, v)
		}
	}
	return out, nil
}

// ApplyFlat standardises values, [M, d] row-major, into a new slice.
func (s Scaler) ApplyFlat(values []float64) []float64 {
	out := slices.Clone(values)
	s.applyTo(out)
	return out
}

// applyTo standardises values, [M, d] row-major, in place.
func (s Scaler) applyTo(values []float64) {
	for row := range slices.Chunk(values, max(1, len(s.Mean))) {
		for j, v := range row {
			row[j] = s.at(j, v)
		}
	}
}

// meanStdDev is the mean and the population standard deviation, in two passes. The standard deviation is 1 for values
// that are constant up to rounding, such as shares that sum to 1: dividing by one of about 1e-17 would turn rounding
// errors into noise. They are the same then.
func meanStdDev(values []float64) (mean, std float64, same bool) {
	if len(values) == 0 {
		return 0, 1, false
	}
	low, high := values[0], values[0]
	for _, v := range values {
		mean += v
		low, high = min(low, v), max(high, v)
	}
	if constant(low, high) {
		return values[0], 1, true
	}
	n := float64(len(values))
	mean /= n
	sum := 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sum / n), false
}

// constant says whether values from low to high are constant up to rounding, or so near each other that the squares of
// their differences are 0.
func constant(low, high float64) bool {
	const within, smallest = 1e-14, 1e-145
	return high-low <= max(within*max(math.Abs(low), math.Abs(high)), smallest)
}

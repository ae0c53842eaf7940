package dataset

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

func TestScaler(t *testing.T) {
	// Columns: mean 3, variance (4+0+4)/3; constant .1, whose mean in floating point is not .1; far from 0.
	x := mat.NewDense(3, 3, []float64{1, .1, 1e9 + 1, 3, .1, 1e9 + 2, 5, .1, 1e9 + 3})
	s := FitScaler(x)
	std := math.Sqrt(8. / 3)
	if want := []float64{3, .1, 1e9 + 2}; !slices.Equal(s.Mean, want) {
		t.Errorf("got means %v, want %v", s.Mean, want)
	}
	for j, want := range []float64{std, 1, math.Sqrt(2. / 3)} {
		if math.Abs(s.StdDev[j]-want) > 1e-15 {
			t.Errorf("column %d: got standard deviation %v, want %v", j, s.StdDev[j], want)
		}
	}
	if !slices.Equal(s.Constant, []bool{false, true, false}) {
		t.Errorf("constant columns %v, want the second", s.Constant)
	}
	if s.Differs(0, 7) || s.Differs(1, math.Nextafter(.1, 1)) || !s.Differs(1, .2) {
		t.Error("only .2 in the constant column of .1 is another value")
	}
	z, err := s.Apply(x)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(z.At(0, 0)+2/std) > 1e-15 || z.At(2, 1) != 0 {
		t.Errorf("got %v", mat.Formatted(z))
	}
	if x.At(0, 0) != 1 {
		t.Error("Apply changed its argument")
	}
	_, err = s.Apply(mat.NewDense(5, 2, nil))
	wantError(t, err, "[5, 2]", "3 columns")
}

// Squares do not overflow: the standard deviation is that of the numbers in another unit. Where they underflow, the
// column is constant, and nothing is divided by 0.
func TestScalerOfLargestAndSmallest(t *testing.T) {
	if s := FitScaler(mat.NewDense(2, 1, []float64{1e-160, 3e-160})); s.StdDev[0] != 1 || !s.Constant[0] {
		t.Errorf("got %+v, want a constant column", s)
	}
	for _, unit := range []float64{maxMagnitude / 5, 1e-140} {
		s := FitScaler(mat.NewDense(3, 1, []float64{unit, 3 * unit, 5 * unit}))
		if want := math.Sqrt(8./3) * unit; !(math.Abs(s.StdDev[0]-want) <= 1e-14*want) {
			t.Errorf("in units of %v: standard deviation %v, want %v", unit, s.StdDev[0], want)
		}
	}
}

// Shares that sum to 1 but for rounding are constant: they are not divided by their rounding.
func TestScalerOfRounding(t *testing.T) {
	x := mat.NewDense(3, 1, []float64{1, 1 - 1.1102230246251565e-16, 1 + 2.220446049250313e-16})
	if s := FitScaler(x); s.StdDev[0] != 1 || s.Mean[0] != 1 {
		t.Errorf("got %+v, want a mean and a standard deviation of 1", s)
	}
	if s := FitScaler(mat.NewDense(3, 1, []float64{1, 1 + 1e-12, 1 - 1e-12})); !(s.StdDev[0] < 1e-12) {
		t.Errorf("got %+v: a column that varies by 1e-12 is not constant", s)
	}
}

// Two targets, [3, 2] row-major: each has a scale of its own.
func TestTargetScaler(t *testing.T) {
	y := []float64{1, .1, 3, .1, 5, .1}
	s := FitScaler(mat.NewDense(3, 2, y))
	if s.Mean[0] != 3 || math.Abs(s.StdDev[0]-math.Sqrt(8./3)) > 1e-15 || s.Mean[1] != .1 || s.StdDev[1] != 1 {
		t.Errorf("got %+v", s)
	}
	if z := s.ApplyFlat(y); math.Abs(z[4]-2/s.StdDev[0]) > 1e-15 || z[5] != 0 || y[4] != 5 {
		t.Errorf("got %v of %v", z, y)
	}
}

// Skewed columns become normal scores: of ranks where there are few rows, along lines where there are many, whatever
// increasing function the column was sent through. Others are standardised. Far values keep their order.
func TestFitNormalScores(t *testing.T) {
	for _, n := range []int{40, 5000} {
		rng := newRand("test", 1, uint64(n))
		x := mat.NewDense(n, 4, nil)
		for i := range n {
			z := rng.NormFloat64()
			x.SetRow(i, []float64{z, math.Exp(2 * z), math.Exp(3 * z), float64(rng.IntN(50) / 49)})
		}
		s := FitNormalScores(x)
		if len(s.Curves) != 4 || len(s.Curves[0]) != 0 || len(s.Curves[1]) < min(n, 80) || len(s.Curves[3]) != 0 {
			t.Fatalf("%d rows: curves %v", n, s.Curves)
		}
		if err := s.CheckCurves(4); err != nil {
			t.Error(err)
		}
		scaled, err := s.Apply(x)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := FitScaler(x).Apply(x)
		if err != nil {
			t.Fatal(err)
		}
		ranks, column := make([]float64, n), mat.Col(nil, 0, x)
		sorted := slices.Sorted(slices.Values(column))
		for i, v := range column {
			at, _ := slices.BinarySearch(sorted, v)
			ranks[i] = distuv.UnitNormal.Quantile((float64(at) + .5) / float64(n))
		}
		_, deviation, _ := meanStdDev(ranks)
		within := .12 // of the lines between 100 points, where the third column is steepest
		if n < 100 {
			within = 1e-12
		}
		for i := range n {
			if scaled.At(i, 0) != plain.At(i, 0) || scaled.At(i, 3) != plain.At(i, 3) {
				t.Fatalf("row %d: a column that is not to be replaced is", i)
			}
			for _, j := range []int{1, 2} {
				if want := ranks[i] / deviation; math.Abs(scaled.At(i, j)-want) > within {
					t.Fatalf("%d rows: score %v of row %d, column %d, want %v", n, scaled.At(i, j), i, j, want)
				}
			}
		}
		last := scaled.At(0, 1)
		for _, v := range []float64{-1e9, -1, 0, 1e-9, 1, 1e9, 1e30} {
			row, err := s.Apply(mat.NewDense(1, 4, []float64{0, v, 0, 0}))
			if err != nil || v > -1e9 && !(row.At(0, 1) > last) || math.Abs(row.At(0, 1)) > 80 {
				t.Errorf("%v has the score %v, after %v (%v)", v, row.At(0, 1), last, err)
			}
			last = row.At(0, 1)
		}
	}
	for name, c := range map[string][]Curve{
		"falls": {{{1, 2}, {0, 3}}}, "one point": {{{1, 2}}}, "NaN": {{{1, 2}, {2, math.NaN()}}}, "two columns": {{}, {}},
	} {
		if (Scaler{Curves: c}).CheckCurves(1) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A skewed column becomes normal scores, but not one of which more than four fifths are one value.
func TestMostlyOneValue(t *testing.T) {
	for zeros, want := range map[int]bool{0: true, 79: true, 81: false} {
		x := mat.NewDense(100, 1, nil)
		for i := zeros; i < 100; i++ {
			x.Set(i, 0, math.Exp(float64(i-zeros)/4))
		}
		if s := FitNormalScores(x); (s.Curves != nil) != want {
			t.Errorf("%d zeros of 100: normal scores %v, want %v", zeros, s.Curves != nil, want)
		}
	}
}

package dataset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Rows do not depend on how many are read at once; y is the features' sum with the Weights, with the noise that was
// asked for, and of variance 1, all within five standard errors.
func TestSimulated(t *testing.T) {
	const n, d = 4000, 12
	s := Simulated{N: n, Features: d, Noise: .5, Seed: 4}
	ctx := context.Background()
	x, y := make([]float64, n*d), make([]float64, n)
	if err := s.Read(ctx, 0, x, y); err != nil {
		t.Fatal(err)
	}
	someX, someY := make([]float64, 100*d), make([]float64, 100)
	if err := s.Read(ctx, 1037, someX, someY); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(someX, x[1037*d:1137*d]) || !slices.Equal(someY, y[1037:1137]) {
		t.Error("rows differ with where reading begins")
	}
	noise, w := 0.0, s.weights()
	for i, v := range y {
		for k := range w {
			v -= w[k] * x[i*d+k]
		}
		noise += v * v / n
	}
	if want := .25 / 1.25; math.Abs(noise/want-1) > 5*math.Sqrt(2./n) || len(w) != 10 {
		t.Errorf("noise's variance %.4f, want %.4f; %d weights", noise, want, len(w))
	}
	if v := stat.Variance(y, nil); math.Abs(v-1) > 5*math.Sqrt(2./n) {
		t.Errorf("y's variance %.4f, want 1", v)
	}
	one := make([]float64, 1)
	for want, err := range map[string]error{
		"Noise NaN":       Simulated{N: 1, Features: 1, Noise: math.NaN()}.Read(ctx, 0, one, one),
		"0 rows":          Simulated{Features: 1}.Read(ctx, 0, nil, nil),
		"from row 3999":   s.Read(ctx, 3999, make([]float64, 2*d), make([]float64, 2)),
		"24 numbers of x": s.Read(ctx, 0, make([]float64, 2*d), make([]float64, 3)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Standardise has the mean and the standard deviation of Scaler, over several blocks of rows, with a mean that is large
// beside the deviations and a constant column; and it names the row of a number that is none.
func TestStandardise(t *testing.T) {
	const n = 9000
	d := &Dataset{Target: "y", X: mat.NewDense(n, 4, nil), Y: make([]float64, n)}
	for i := range n {
		ones := 1 - float64(i%2)*0x1p-53 // constant up to rounding, as shares that sum to 1
		d.X.(*mat.Dense).SetRow(i, []float64{1e6 + math.Sin(float64(i*i)), .1, float64(i), ones})
		d.Y[i] = math.Cos(float64(i * i))
	}
	ctx := context.Background()
	s, features, targets, err := Standardise(ctx, RowsOf(d), true)
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []Scaler{FitScaler(d.X), FitScaler(mat.NewDense(d.Rows(), 1, d.Y))} {
		got := []Scaler{features, targets}[k]
		if !slices.Equal(got.Constant, want.Constant) {
			t.Errorf("constant columns %v, want %v", got.Constant, want.Constant)
		}
		for i := range want.Mean {
			if math.Abs(got.Mean[i]-want.Mean[i]) > 1e-12*(1+math.Abs(want.Mean[i])) ||
				math.Abs(got.StdDev[i]/want.StdDev[i]-1) > 1e-9 {
				t.Errorf("column %d: %v and %v, want %v and %v", i, got.Mean[i], got.StdDev[i], want.Mean[i], want.StdDev[i])
			}
		}
	}
	x, y := make([]float64, 8), make([]float64, 2)
	if err := s.Read(ctx, 8000, x, y); err != nil || math.Abs(x[1]) > 1e-12 || math.Abs(x[7]) > 1e-12 ||
		y[0] != targets.ApplyFlat(d.Y[8000:8001])[0] {
		t.Errorf("%v %v %v", x, y, err)
	}
	if _, _, classes, err := Standardise(ctx, RowsOf(d), false); err != nil || classes.StdDev[0] != 1 {
		t.Errorf("targets of a classification: %v, %v", classes, err)
	}
	d.X.(*mat.Dense).Set(5000, 2, math.NaN())
	_, _, _, err = Standardise(ctx, RowsOf(d), true)
	if err == nil || !strings.Contains(err.Error(), "row 5000, column 2") {
		t.Errorf("NaN: %v", err)
	}
}

// wrong is a source that does not keep to what Source demands.
type wrong struct {
	Source
	fills int     // rows that are filled in by a Read; 0: all
	adds  float64 // to y, from row 50 on
	only  int     // adds to the row before this one alone; 0: all
}

func (w *wrong) Read(ctx context.Context, from int, x, y []float64) error {
	n := len(y) / w.Targets()
	if w.fills > 0 {
		n = min(n, w.fills)
	}
	err := w.Source.Read(ctx, from, x[:n*w.Dims()], y[:n*w.Targets()])
	for i := range y {
		if w.only == 0 && from+i >= 50 || w.only == from+i+1 {
			y[i] += w.adds
		}
	}
	return err
}

// Rows that Read leaves out, and rows that change after they were examined, are errors that name the row: silence would
// give the posterior of other data.
func TestSourceThatChanges(t *testing.T) {
	ctx := t.Context()
	s := &wrong{Source: Simulated{N: 20_000, Features: 2, Noise: 1, Seed: 4}, fills: 30}
	if _, err := Examine(ctx, s, 40, nil); err == nil || !strings.Contains(err.Error(), "row 30, column 0, is NaN") ||
		!strings.Contains(err.Error(), "does not fill in") {
		t.Errorf("rows that are left out: %v", err)
	}
	s.fills = 0
	scaled, _, _, err := Standardise(ctx, s, true)
	if err != nil {
		t.Fatal(err)
	}
	read := func(from, rows int) error {
		return scaled.Read(ctx, from, make([]float64, 2*rows), make([]float64, rows))
	}
	s.adds = 1e-9
	if err := read(0, 50); err != nil {
		t.Errorf("rows that stay: %v", err)
	}
	for _, from := range []int{30, 50, s.Rows() - 100} {
		if err := read(from, 100); !errors.Is(err, errChanged) {
			t.Errorf("rows that change, from %d on: %v", from, err)
		}
	}
	if err := read(s.Rows()-2, 3); err == nil {
		t.Error("a row that does not exist is read")
	}
	for _, row := range []int{0, 1, 12_345, s.Rows() - 1} { // any row alone
		s.adds, s.only = 1e-9, row+1
		if err := read(0, s.Rows()); !errors.Is(err, errChanged) || !strings.Contains(err.Error(),
			fmt.Sprintf("row %d is not", row)) {
			t.Errorf("only row %d changes, of all: %v", row, err)
		}
		if err := read(row-row%100, 100); !errors.Is(err, errChanged) || !strings.Contains(err.Error(),
			fmt.Sprintf("row %d is not", row)) {
			t.Errorf("only row %d changes: %v", row, err)
		}
	}
}

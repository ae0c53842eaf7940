package dataset

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
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
	z, err := s.Apply(x)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(z.At(0, 0)+2/std) > 1e-15 || z.At(2, 1) != 0 {
		t.Errorf("got %v", mat.Formatted(z))
	}
	back, err := s.Undo(z)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		for j := range 3 {
			if math.Abs(back.At(i, j)-x.At(i, j)) > 1e-15*math.Abs(x.At(i, j)) {
				t.Errorf("undone %v, was %v", back.At(i, j), x.At(i, j))
			}
		}
	}
	if x.At(0, 0) != 1 {
		t.Error("Apply changed its argument")
	}
	_, err = s.Apply(mat.NewDense(5, 2, nil))
	wantError(t, err, "[5, 2]", "3 columns")
	_, err = s.Undo(mat.NewDense(5, 4, nil))
	wantError(t, err, "[5, 4]", "3 columns")
}

func TestScalerOfEmptyMatrix(t *testing.T) {
	if z, err := FitScaler(&mat.Dense{}).Apply(&mat.Dense{}); err != nil || !z.IsEmpty() {
		t.Errorf("got %v, error %v", z, err)
	}
}

func TestTargetScaler(t *testing.T) {
	y := []float64{1, 3, 5}
	s := FitTargetScaler(y)
	if s.Mean != 3 || math.Abs(s.StdDev-math.Sqrt(8./3)) > 1e-15 {
		t.Errorf("got %+v", s)
	}
	z := s.Apply(y)
	if math.Abs(z[2]-2/s.StdDev) > 1e-15 {
		t.Errorf("got %v", z)
	}
	for i, v := range s.Undo(z) {
		if math.Abs(v-y[i]) > 1e-15 {
			t.Errorf("undone %v, was %v", v, y[i])
		}
	}
	if s := FitTargetScaler([]float64{.1, .1, .1}); s.StdDev != 1 || s.Mean != .1 {
		t.Errorf("constant target: got %+v", s)
	}
	if s := FitTargetScaler(nil); s.StdDev != 1 || s.Mean != 0 {
		t.Errorf("no target: got %+v", s)
	}
}

func TestScalerJSON(t *testing.T) {
	s := FitScaler(Yacht().X)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back Scaler
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(back.Mean, s.Mean) || !slices.Equal(back.StdDev, s.StdDev) {
		t.Errorf("%s reads back as %+v", text, back)
	}
	if text, _ := json.Marshal(TargetScaler{Mean: 1, StdDev: 2}); string(text) != `{"mean":1,"std_dev":2}` {
		t.Errorf("got %s", text)
	}
}

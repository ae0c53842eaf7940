package dataset

import (
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// pictures are 5 pictures of 3 bytes, with two classes.
func pictures() *Dataset {
	return &Dataset{Name: "pictures", Task: BinaryClassification, Features: []string{"a", "b", "c"}, Target: "y",
		Classes: []string{"0", "1"}, X: NewPixels([]byte{0, 51, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 3),
		Y: []float64{0, 1, 0, 1, 1}}
}

func TestPixels(t *testing.T) {
	d := pictures()
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := mat.Row(nil, 0, d.X); d.Rows() != 5 || d.Dims() != 3 || !slices.Equal(got, []float64{0, .2, 1}) {
		t.Errorf("%d x %d, first row %v", d.Rows(), d.Dims(), got)
	}
	if got := d.X.T().At(2, 0); got != 1 {
		t.Errorf("transposed: %v", got)
	}
	some, err := d.Subset([]int{4, 0, 4})
	if err != nil {
		t.Fatal(err)
	}
	if some, err = some.Subset([]int{1, 0}); err != nil { // rows 0 and 4
		t.Fatal(err)
	}
	pixels := some.X.(*Pixels)
	if !slices.Equal(pixels.Bytes(0), []byte{0, 51, 255}) || !slices.Equal(pixels.Bytes(1), []byte{10, 11, 12}) ||
		some.Y[1] != 1 || some.OriginalRow(1) != 4 {
		t.Errorf("the subset is %v and %v", pixels.Bytes(0), pixels.Bytes(1))
	}
	if &pixels.bytes[0] != &d.X.(*Pixels).bytes[0] {
		t.Error("a subset has bytes of its own")
	}
	parts, err := d.Split(Fractions{Train: .6, Test: .4}, 1)
	if err != nil || parts.Train.Rows() != 3 || parts.Test.Rows() != 2 {
		t.Errorf("split: %d and %d rows, %v", parts.Train.Rows(), parts.Test.Rows(), err)
	}
	other := pictures()
	other.X.(*Pixels).bytes[7]++
	if hash := d.Hash(); hash == other.Hash() || hash != pictures().Hash() {
		t.Error("the hash does not tell bytes apart, or changes")
	}
	if s := FitScaler(d.X); !slices.Equal(s.Mean, FitScaler(mat.DenseCopyOf(d.X)).Mean) {
		t.Errorf("means %v", s.Mean)
	}
	defer func() {
		if recover() == nil {
			t.Error("7 bytes are no pictures of 3, and no panic")
		}
	}()
	NewPixels(make([]byte, 7), 3)
}

func TestScalerIsIdentity(t *testing.T) {
	for _, c := range []struct {
		scaler Scaler
		want   bool
	}{
		{NoScaler(2), true}, {Scaler{}, true},
		{Scaler{Mean: []float64{0, 1}, StdDev: []float64{1, 1}}, false},
		{Scaler{Mean: []float64{0, 0}, StdDev: []float64{1, 2}}, false},
	} {
		if got := c.scaler.IsIdentity(); got != c.want {
			t.Errorf("%v: %v", c.scaler, got)
		}
	}
}

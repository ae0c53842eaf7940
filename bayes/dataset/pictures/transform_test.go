package pictures

import (
	"math"
	"slices"
	"testing"

	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/mat"
)

// in makes a set of these bytes.
func in(pixels []byte, features []string) *dataset.Dataset {
	rows := len(pixels) / len(features)
	return &dataset.Dataset{Name: "some", Title: "Some", Task: dataset.BinaryClassification, Classes: []string{"a", "b"},
		Features: features, Target: "label", X: dataset.NewPixels(pixels, len(features)), Y: make([]float64, rows)}
}

func TestGrey(t *testing.T) {
	d := in([]byte{255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 100, 50, 25, 0, 0, 0},
		features(1, 3, "red", "green", "blue"))
	some, err := d.Subset([]int{1, 0})
	if err != nil {
		t.Fatal(err)
	}
	grey, err := Grey(some)
	if err != nil {
		t.Fatal(err)
	}
	if err := grey.Validate(); err != nil {
		t.Fatal(err)
	}
	x := grey.X.(*dataset.Pixels)
	// 255 (.299, .587, .114) = 76.245, 149.685, 29.07; 29.9 + 29.35 + 2.85 = 62.1.
	if !slices.Equal(x.Bytes(1), []byte{76, 150, 29}) || !slices.Equal(x.Bytes(0), []byte{255, 62, 0}) {
		t.Errorf("%v and %v", x.Bytes(0), x.Bytes(1))
	}
	if !slices.Equal(grey.Features, []string{"0,0", "0,1", "0,2"}) || grey.OriginalRow(0) != 1 ||
		grey.Title != "Some in grey" || d.Dims() != 9 {
		t.Errorf("%q, row %d, %q", grey.Features, grey.OriginalRow(0), grey.Title)
	}
	for want, wrong := range map[string]*dataset.Dataset{
		`feature 0 is "0,0"`:       in(make([]byte, 9), features(3, 3)),
		`feature 3 is "y"`:         in(make([]byte, 4), append(features(1, 1, "red", "green", "blue"), "y")),
		"4 features and 4 names":   in(make([]byte, 4), append(features(1, 1, "red", "green", "blue"), "1,red")),
		"*mat.Dense":               {Name: "table", X: mat.NewDense(1, 3, nil)},
		"3 features and 0 names":   {Name: "unnamed", X: dataset.NewPixels(make([]byte, 3), 3)},
		`its name ends in ",blue"`: in(make([]byte, 3), []string{"0,red", "0,green", "0,alpha"}),
	} {
		_, err := Grey(wrong)
		refused(t, err, want)
	}
}

// Numbers of scikit-image 0.26.0: warp(p/255, inverse_map=AffineTransform(rotation=+-.4, translation=[a, b])), where
// the translation keeps the centre (2.5, 2), times 255 and rounded; p is 37 k mod 256, of 5 x 6 pixels. MNIST-C's
// program is the same for 28 x 28.
func TestRotated(t *testing.T) {
	plus := []byte{7, 40, 100, 126, 147, 61, 29, 39, 60, 81, 101, 93, 179, 87, 14, 37, 56, 77, 153, 204, 179, 116, 76, 31,
		66, 158, 179, 193, 120, 2}
	minus := []byte{91, 113, 35, 78, 66, 27, 150, 164, 42, 65, 112, 160, 162, 197, 49, 48, 95, 143, 145, 193, 143, 31, 79,
		96, 29, 109, 216, 58, 62, 37}
	const height, width, rows = 5, 6, 200
	var one []byte
	for k := range height * width {
		one = append(one, byte(37*k))
	}
	d := in(slices.Repeat(one, rows), features(height, width))
	turned := func(d *dataset.Dataset, radians float64, seed uint64) *dataset.Pixels {
		t.Helper()
		out, err := Rotated(d, height, width, radians, seed)
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Validate(); err != nil {
			t.Fatal(err)
		}
		return out.X.(*dataset.Pixels)
	}
	first, again, other := turned(d, .4, 1), turned(d, .4, 1), turned(d, .4, 2)
	pluses, changes := 0, 0
	for i := range rows {
		got, want := first.Bytes(i), plus
		if sign(1, i) == 0 {
			pluses++
		} else {
			want = minus
		}
		if !slices.Equal(got, want) {
			t.Fatalf("picture %d is %v, want %v", i, got, want)
		}
		if !slices.Equal(got, again.Bytes(i)) {
			t.Fatalf("picture %d differs for the same seed", i)
		}
		if !slices.Equal(got, other.Bytes(i)) {
			changes++
		}
	}
	// Each is a binomial of 200 draws with probability 1/2, whose standard deviation is 7.
	if pluses < 70 || pluses > 130 || changes < 70 || changes > 130 {
		t.Errorf("%d turned one way, %d differently with another seed, of %d", pluses, changes, rows)
	}
	some, err := d.Subset([]int{17, 3, 150})
	if err != nil {
		t.Fatal(err)
	}
	for i, got := 0, turned(some, .4, 1); i < 3; i++ {
		if !slices.Equal(got.Bytes(i), first.Bytes(some.OriginalRow(i))) {
			t.Errorf("row %d of a subset is turned differently than in the whole", i)
		}
	}
	for _, radians := range []float64{0, 2 * math.Pi} {
		if got := turned(d, radians, 1); radians == 0 && !slices.Equal(got.Bytes(0), one) {
			t.Errorf("without an angle: %v", got.Bytes(0))
		}
	}
	// By half a turn the pixels are in reverse order, in a picture that is much higher than wide too.
	column := in([]byte{1, 2, 3, 4, 5, 6, 7}, features(7, 1))
	if out, err := Rotated(column, 7, 1, math.Pi, 1); err != nil ||
		!slices.Equal(out.X.(*dataset.Pixels).Bytes(0), []byte{7, 6, 5, 4, 3, 2, 1}) {
		t.Errorf("half a turn: %v, %v", out, err)
	}
	if out, err := Rotated(column, 7, 1, math.Pi/2, 1); err != nil ||
		!slices.Equal(out.X.(*dataset.Pixels).Bytes(0), []byte{0, 0, 0, 4, 0, 0, 0}) {
		t.Errorf("a quarter turn: %v, %v", out, err)
	}
	// Each channel is turned alone.
	var coloured []byte
	for _, b := range one {
		coloured = append(coloured, b, 0, 255-b)
	}
	out, err := Rotated(in(coloured, features(height, width, "red", "green", "blue")), height, width, .4, 1)
	if err != nil {
		t.Fatal(err)
	}
	for k, b := range out.X.(*dataset.Pixels).Bytes(0) {
		if k%3 == 0 && b != first.Bytes(0)[k/3] || k%3 == 1 && b != 0 {
			t.Fatalf("%s is %d", out.Features[k], b)
		}
	}
	if out.Name != "some rotated by 0.4" {
		t.Errorf("named %q", out.Name)
	}
}

func TestRotatedFaults(t *testing.T) {
	d := in(make([]byte, 30), features(5, 6))
	for want, c := range map[string]struct {
		d             *dataset.Dataset
		height, width int
		radians       float64
	}{
		"30 features":  {d, 7, 6, .4},
		"0 x 6 pixels": {d, 0, 6, .4},
		"by NaN":       {d, 5, 6, math.NaN()},
		"by +Inf":      {d, 5, 6, math.Inf(1)},
		"*mat.Dense":   {&dataset.Dataset{X: mat.NewDense(1, 30, nil)}, 5, 6, .4},
	} {
		_, err := Rotated(c.d, c.height, c.width, c.radians, 1)
		refused(t, err, want)
	}
}

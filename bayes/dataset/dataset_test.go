package dataset

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// small is a table of two rows and two classes.
func small() *Dataset {
	return &Dataset{
		Name: "small", Task: BinaryClassification, Features: []string{"a", "b", "c"}, Target: "ill",
		Classes: []string{"no", "yes"},
		X:       mat.NewDense(2, 3, []float64{1, 2, 3, 4, 5, 6}), Y: []float64{0, 1},
	}
}

// wantError fails unless err mentions every one of the texts.
func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not mention %q", err, text)
		}
	}
}

func TestValidate(t *testing.T) {
	if err := small().Validate(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		spoil func(d *Dataset)
		want  []string
	}{
		{"feature NaN", func(d *Dataset) { d.X.(*mat.Dense).Set(1, 2, math.NaN()) },
			[]string{"small", "row 1", `"c"`, "NaN"}},
		{"feature Inf", func(d *Dataset) { d.X.(*mat.Dense).Set(0, 1, math.Inf(-1)) }, []string{"row 0", `"b"`, "-Inf"}},
		{"target NaN", func(d *Dataset) { d.Y[1] = math.NaN() }, []string{"row 1", `"ill"`, "NaN"}},
		{"target Inf", func(d *Dataset) { d.Task, d.Classes, d.Y[0] = Regression, nil, math.Inf(1) },
			[]string{"row 0", `"ill"`, "+Inf"}},
		{"feature too large", func(d *Dataset) { d.X.(*mat.Dense).Set(1, 0, 1e200) },
			[]string{"row 1", `"a"`, "1e+200", "1e+150", "unit"}},
		{"target too large", func(d *Dataset) { d.Task, d.Classes, d.Y[1] = Regression, nil, -1e200 },
			[]string{"row 1", `"ill"`, "-1e+200", "1e+150", "unit"}},
		{"name in Latin-1", func(d *Dataset) { d.Features[1] = "h\xf6he" }, []string{"feature 1", `"h\xf6he"`, "iconv"}},
		{"target in Latin-1", func(d *Dataset) { d.Target = "\xfc" }, []string{"target 0", `"\xfc"`, "iconv"}},
		{"class in Latin-1", func(d *Dataset) { d.Classes[1] = "\xe9t\xe9" }, []string{"class 1", `"\xe9t\xe9"`, "iconv"}},
		{"class twice", func(d *Dataset) { d.Classes[0] = "yes" }, []string{"classes 0 and 1", `"yes"`}},
		{"targets too few", func(d *Dataset) { d.Y = d.Y[:1] }, []string{"[2, 3]", "[1]"}},
		{"names too few", func(d *Dataset) { d.Features = d.Features[:2] }, []string{"[2, 3]", "2 feature names"}},
		{"no X", func(d *Dataset) { d.X = nil }, []string{"X are nil"}},
		{"empty X", func(d *Dataset) { d.X, d.Y = &mat.Dense{}, nil }, []string{"[0, 0]"}},
		{"class out of range", func(d *Dataset) { d.Y[1] = 2 }, []string{"row 1", "2 classes", "0 to 1"}},
		{"class below 0", func(d *Dataset) { d.Y[0] = -1 }, []string{"row 0", "-1"}},
		{"class not whole", func(d *Dataset) { d.Y[0] = .5 }, []string{"row 0", "0.5"}},
		{"classes for a regression", func(d *Dataset) { d.Task = Regression }, []string{"regression", "2 classes"}},
		{"three classes for binary", func(d *Dataset) { d.Classes = []string{"a", "b", "c"} },
			[]string{"needs 2 classes", "has 3"}},
		{"one class", func(d *Dataset) { d.Task, d.Classes = Classification, []string{"a"} },
			[]string{"at least 2 classes", `["a"]`}},
		{"unknown task", func(d *Dataset) { d.Task = 7 }, []string{"Task(7)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := small()
			tt.spoil(d)
			wantError(t, d.Validate(), tt.want...)
		})
	}
}

func TestValidateViewOfWiderMatrix(t *testing.T) {
	d := small()
	wide := mat.NewDense(2, 4, []float64{1, 2, 3, math.NaN(), 4, 5, 6, math.NaN()})
	d.X = wide.Slice(0, 2, 0, 3).(*mat.Dense)
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	if d.Hash() != small().Hash() {
		t.Error("the hash of a view sees what is beside it")
	}
}

func TestSubset(t *testing.T) {
	d := small()
	s, err := d.Subset([]int{1, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	if want := mat.NewDense(3, 3, []float64{4, 5, 6, 1, 2, 3, 4, 5, 6}); !mat.Equal(s.X, want) {
		t.Errorf("got %v", s.X)
	}
	if s.Y[0] != 1 || s.Y[1] != 0 || s.Y[2] != 1 {
		t.Errorf("got Y %v, want 1 0 1", s.Y)
	}
	s.X.(*mat.Dense).Set(0, 0, -1)
	s.Y[0], s.Features[0], s.Classes[0] = -1, "z", "z"
	if d.X.At(1, 0) != 4 || d.Y[1] != 1 || d.Features[0] != "a" || d.Classes[0] != "no" {
		t.Error("a subset shares memory with the whole")
	}
	_, err = d.Subset([]int{0, 2})
	wantError(t, err, "no row 2", "0 to 1")
	_, err = d.Subset([]int{-1})
	wantError(t, err, "no row -1")
	_, err = d.Subset(nil)
	wantError(t, err, "at least one row")
	d.Y = d.Y[:1]
	_, err = d.Subset([]int{0})
	wantError(t, err, "[2, 3]", "[1]")
}

func TestHash(t *testing.T) {
	// Python: sha256(pack('<3Q', 2, 3, 2) + pack('<6d', 1, 2, 3, 4, 5, 6) + pack('<2d', 0, 1) + pack('<Q', 2) + b'no' +
	// pack('<Q', 3) + b'yes').
	const want = "f9977fb93f0d8fb57939a914f498a03621d47c47042fcf54cd1f37c24a54be7d"
	if got := small().Hash(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	changes := map[string]func(d *Dataset){
		"X":            func(d *Dataset) { d.X.(*mat.Dense).Set(1, 1, math.Nextafter(5, 6)) },
		"Y":            func(d *Dataset) { d.Y[0] = 1 },
		"class":        func(d *Dataset) { d.Classes[1] = "Yes" },
		"class border": func(d *Dataset) { d.Classes = []string{"noy", "es"} },
		"shape":        func(d *Dataset) { d.X = mat.NewDense(3, 2, []float64{1, 2, 3, 4, 5, 6}) },
		"row order": func(d *Dataset) {
			d.X = mat.NewDense(2, 3, []float64{4, 5, 6, 1, 2, 3})
			d.Y = []float64{1, 0}
		},
	}
	for name, change := range changes {
		d := small()
		change(d)
		if d.Hash() == want {
			t.Errorf("a changed %s leaves the hash the same", name)
		}
	}
	renamed := small()
	renamed.Name, renamed.Title = "other", "Other"
	if renamed.Hash() != want {
		t.Error("the name enters the hash")
	}
}

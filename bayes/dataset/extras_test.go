package dataset

import (
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

const claims = "age,cost,years,w,seen\n31,2,1.5,1,true\n45,7,2,3,FALSE\n52,1,.5,0,1\n60,4,1,2,0\n"

// Weight, Exposure and Event of a file go with their rows into parts, folds and what is joined; new rows have them too.
func TestExtras(t *testing.T) {
	d, err := ReadCSV(strings.NewReader(claims),
		CSVOptions{Target: "cost", Exposure: "years", Weight: "w", Event: "seen"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Features, []string{"age"}) || !slices.Equal(d.Weights, []float64{1, 3, 0, 2}) ||
		!slices.Equal(d.Exposure, []float64{1.5, 2, .5, 1}) || !slices.Equal(d.Censored, []bool{false, true, false, true}) {
		t.Fatalf("read as features %q, weights %v, exposure %v, censored %v", d.Features, d.Weights, d.Exposure, d.Censored)
	}
	want := "csv: 4 rows, 1 feature, regression of cost, with exposures, weighted, seen in 2 rows\n"
	if !strings.HasPrefix(d.String(), want) {
		t.Errorf("%s", d)
	}
	some, err := d.Subset([]int{3, 0})
	if err != nil {
		t.Fatal(err)
	}
	if some.Weights[0] != 2 || some.Exposure[1] != 1.5 || !some.Censored[0] || some.Censored[1] {
		t.Errorf("rows 3 and 0 have weights %v, exposure %v, censored %v", some.Weights, some.Exposure, some.Censored)
	}
	plain := *some
	plain.Weights, plain.Exposure, plain.Censored = nil, nil, nil
	joined, err := Parts{Train: &plain, Validation: some}.Joined()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(joined.Weights, []float64{1, 1, 2, 1}) || !slices.Equal(joined.Exposure, []float64{1, 1, 1, 1.5}) ||
		!slices.Equal(joined.Censored, []bool{false, false, true, false}) {
		t.Errorf("joined: weights %v, exposure %v, censored %v", joined.Weights, joined.Exposure, joined.Censored)
	}
	hashes := map[string]bool{}
	for _, change := range []func(d *Dataset){
		func(*Dataset) {}, func(d *Dataset) { d.Weights = nil }, func(d *Dataset) { d.Exposure = nil },
		func(d *Dataset) { d.Censored = nil }, func(d *Dataset) { d.Weights = []float64{2, 2} },
		func(d *Dataset) { d.Weights, d.Exposure = nil, d.Weights },
	} {
		other := *some
		change(&other)
		if h := other.Hash(); hashes[h] {
			t.Error("data with other weights, exposures or censored rows have one hash")
		} else {
			hashes[h] = true
		}
	}
	new, err := ReadCSV(strings.NewReader("years,age\n3,20\n"), CSVOptions{Like: d, Exposure: "years"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(new.Exposure, []float64{3}) || new.Dims() != 1 || new.X.At(0, 0) != 20 {
		t.Errorf("new rows have exposure %v and X %v", new.Exposure, new.X)
	}
}

func TestExtrasRefused(t *testing.T) {
	for _, c := range []struct {
		text, says string
		opts       CSVOptions
	}{
		{claims, `"cost"`, CSVOptions{Target: "cost", Weight: "cost"}},
		{claims, "no column", CSVOptions{Target: "cost", Exposure: "kilometres"}},
		{claims, "Event is 1.5", CSVOptions{Target: "cost", Event: "years", Ignore: []string{"seen"}}},
		{"a,y,w\n1,2,x\n", `"x" is no number`, CSVOptions{Target: "y", Weight: "w"}},
		{"a,y,w\n1,2,\n", "the value is missing", CSVOptions{Target: "y", Weight: "w"}},
		{"a,y,w\n1,2,1\n", "has another part already", CSVOptions{Weight: "a", Like: &Dataset{Features: []string{"a"},
			Target: "y"}}},
	} {
		if _, err := ReadCSV(strings.NewReader(c.text), c.opts); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v does not say %q", c.opts, err, c.says)
		}
	}
	for says, change := range map[string]func(d *Dataset){
		"Weights has 1 values":   func(d *Dataset) { d.Weights = []float64{1} },
		"weight of row 1 is -1":  func(d *Dataset) { d.Weights = []float64{1, -1} },
		"exposure of row 0 is 0": func(d *Dataset) { d.Exposure = []float64{0, 1} },
		"which are for numbers":  func(d *Dataset) { d.Task, d.Classes, d.Exposure = 1, []string{"a", "b"}, []float64{1, 1} },
		"there are 2 targets": func(d *Dataset) {
			d.Targets, d.Y, d.Censored = []string{"a", "b"}, make([]float64, 4), make([]bool, 2)
		},
		"Censored 3: each": func(d *Dataset) { d.Censored = make([]bool, 3) },
	} {
		d := &Dataset{Features: []string{"x"}, Target: "y", X: mat.NewDense(2, 1, nil), Y: []float64{0, 1}}
		change(d)
		if err := d.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v does not say %q", err, says)
		}
	}
}

// Rows that do not count at all can be judged, and neither trained nor validated on.
func TestWeightsOfZero(t *testing.T) {
	d := &Dataset{Features: []string{"x"}, Target: "y", X: mat.NewDense(2, 1, nil), Y: []float64{0, 1}}
	none := *d
	none.Weights = []float64{0, 0}
	for _, p := range []Parts{{Train: &none}, {Train: d, Validation: &none}, {Train: d, Test: &none}} {
		if err := p.Validate(); (err == nil) != (p.Test != nil) || err != nil && !strings.Contains(err.Error(),
			"all weights of its 2 rows are 0") {
			t.Errorf("%+v: %v", p, err)
		}
	}
	none.Weights = []float64{}
	if err := (Parts{Train: &none}).Validate(); err == nil || !strings.Contains(err.Error(), "Weights has 0 values") {
		t.Errorf("no weights: %v", err)
	}
}

package dataset_test

import (
	"errors"
	"strings"
	"testing"

	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/mat"
)

const (
	original  = "rooms,tax,price\n6,300,24\n5,250,21\n7,400,30\n"
	reordered = "tax,price,rooms\n300,24,6\n250,21,5\n400,30,7\n"
)

func table(t *testing.T, text string, like *dataset.Dataset) *dataset.Dataset {
	t.Helper()
	opts := dataset.CSVOptions{Name: "houses", Target: "price", Like: like}
	if like != nil {
		opts.Target = ""
	}
	d, err := dataset.ReadCSV(strings.NewReader(text), opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A file with the same columns in another order is refused beside the first, with the column and the cure, by which it
// has the same numbers.
func TestOrderOfColumns(t *testing.T) {
	first, second := table(t, original, nil), table(t, reordered, nil)
	for name, parts := range map[string]dataset.Parts{
		"validation": {Train: first, Validation: second}, "test": {Train: first, Test: second},
	} {
		err := parts.Validate()
		if !errors.Is(err, dataset.ErrOrder) || !strings.Contains(err.Error(), `feature "tax" is number 0`) ||
			!strings.Contains(err.Error(), "CSVOptions.Like") {
			t.Errorf("%s part with other columns: %v", name, err)
		}
	}
	if same := table(t, reordered, first); same.Hash() != first.Hash() {
		t.Errorf("in the first one's order it is %v, want %v", mat.Formatted(same.X), mat.Formatted(first.X))
	}
}

// What stands at another place is an error; what is renamed, or not there, is none.
func TestSameOrder(t *testing.T) {
	d := &dataset.Dataset{Name: "d", Features: []string{"a", "b"}, Target: "y", Classes: []string{"no", "yes"}}
	for _, c := range []struct {
		features, targets, classes []string
		says                       string // empty: no error
	}{
		{[]string{"a", "b"}, []string{"y"}, []string{"no", "yes"}, ""},
		{nil, nil, nil, ""},
		{[]string{"c", "d"}, []string{"z"}, []string{"0", "1"}, ""},
		{[]string{"a", "c"}, nil, nil, ""},
		{[]string{"b", "a"}, nil, nil, `feature "a"`},
		{[]string{"c", "a"}, nil, nil, `feature "a"`},
		{nil, []string{"x", "y"}, nil, `target "y"`},
		{[]string{"a", "y"}, []string{"b"}, nil, `"b" is a feature here`}, // the second file's target is another column
		{[]string{"a", "y"}, nil, nil, `"y" is a target here`},
		{[]string{"a", "y"}, []string{"y"}, nil, ""}, // a feature of the target's name
		{nil, nil, []string{"yes", "no"}, `class "no"`},
	} {
		err := d.SameOrder(c.features, c.targets, c.classes)
		if (err == nil) != (c.says == "") || err != nil && (!errors.Is(err, dataset.ErrOrder) ||
			!strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A class that the model has not seen is refused: its number is that of another class, as which it would be scored.
func TestUnknownClass(t *testing.T) {
	d := &dataset.Dataset{Name: "d", Features: []string{"a"}, Target: "y", Classes: []string{"cat", "dog", "fox"}}
	if err := d.SameOrder(nil, nil, []string{"cat", "dog", "owl"}); !errors.Is(err, dataset.ErrMissingClass) ||
		!strings.Contains(err.Error(), `class 2 is "fox"`) {
		t.Errorf("a class of its own: %v", err)
	}
	if err := d.SameOrder(nil, nil, []string{"cat", "dog", "fox", "owl"}); err != nil {
		t.Errorf("a class is absent: %v", err)
	}
}

// A category or class is the same one with a point and without, also where the second file lacks some.
func TestOrderOfWholeNumbers(t *testing.T) {
	d := &dataset.Dataset{
		Name: "d", Features: []string{"grade=1.0", "grade=2.0"}, Target: "y", Classes: []string{"2.0", "3.0"},
	}
	for _, c := range []struct {
		features, classes []string
		is                error
	}{
		{[]string{"grade=1", "grade=2"}, []string{"2", "3"}, nil},
		{[]string{"grade=1", "grade=2"}, []string{"1", "2", "3"}, dataset.ErrOrder},
		{[]string{"grade=0", "grade=1", "grade=2"}, []string{"2", "3"}, dataset.ErrOrder},
		{[]string{"grade=1", "grade=3"}, []string{"2", "3"}, dataset.ErrMissingCategory},
		{[]string{"grade=1", "grade=02"}, nil, dataset.ErrMissingCategory},
		{nil, []string{"2", "4"}, dataset.ErrMissingClass},
	} {
		if err := d.SameOrder(c.features, nil, c.classes); !errors.Is(err, c.is) {
			t.Errorf("%q, %q: %v, want %v", c.features, c.classes, err, c.is)
		}
	}
	if d.Features[0] != "grade=1.0" || d.Classes[0] != "2.0" {
		t.Error("the names have changed")
	}
}

// A category that the model has not seen is refused: its column would be taken for another category's.
func TestUnknownCategory(t *testing.T) {
	d := &dataset.Dataset{Name: "d", Features: []string{"a", "colour=blue", "colour=red"}, Target: "y"}
	for _, c := range []struct {
		features []string
		refused  bool
	}{
		{[]string{"a", "colour=blue", "colour=green"}, true},
		{[]string{"a", "colour=blue", "colour=red"}, false},
		{[]string{"a", "hue=blue", "hue=red"}, false}, // renamed
	} {
		err := d.SameOrder(c.features, nil, nil)
		if errors.Is(err, dataset.ErrMissingCategory) != c.refused || !c.refused && err != nil ||
			c.refused && !strings.Contains(err.Error(), `feature 2 is "colour=red"`) {
			t.Errorf("%q: %v", c.features, err)
		}
	}
}

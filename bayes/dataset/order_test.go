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
	opts := dataset.CSVOptions{Target: "price", Like: like}
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

// What stands at another place is an error, and so are a class and a category that the model has not seen: their number
// or column would be taken for another's. What is renamed, or not there, is none. "1.0" is the same as "1".
func TestSameOrder(t *testing.T) {
	plain := dataset.Dataset{Name: "d", Features: []string{"a", "b"}, Target: "y", Classes: []string{"no", "yes"}}
	grades := dataset.Dataset{Name: "d", Features: []string{"grade=1.0", "grade=2.0"}, Target: "y",
		Classes: []string{"2.0", "3.0"}}
	colours := dataset.Dataset{Name: "d", Features: []string{"a", "colour=blue", "colour=red"}, Target: "y"}
	for _, c := range []struct {
		d                          dataset.Dataset
		features, targets, classes string
		is                         error
		says                       string
	}{
		{plain, "a b", "y", "no yes", nil, ""},
		{plain, "", "", "", nil, ""},
		{plain, "c d", "z", "0 1", nil, ""},
		{plain, "a c", "", "", nil, ""},
		{plain, "b a", "", "", dataset.ErrOrder, `feature "a"`},
		{plain, "c a", "", "", dataset.ErrOrder, `feature "a"`},
		{plain, "", "x y", "", dataset.ErrOrder, `target "y"`},
		{plain, "a y", "b", "", dataset.ErrOrder, `"b" is a feature here`}, // the second file's target is another column
		{plain, "a y", "", "", dataset.ErrOrder, `"y" is a target here`},
		{plain, "a y", "y", "", nil, ""}, // a feature of the target's name
		{plain, "", "", "yes no", dataset.ErrOrder, `class "no"`},
		{plain, "", "", "no maybe", dataset.ErrMissingClass, `class 1 is "yes"`},
		{plain, "", "", "no yes maybe", nil, ""},
		{grades, "grade=1 grade=2", "", "2 3", nil, ""},
		{grades, "grade=1 grade=2", "", "1 2 3", dataset.ErrOrder, ""},
		{grades, "grade=0 grade=1 grade=2", "", "2 3", dataset.ErrOrder, ""},
		{grades, "grade=1 grade=3", "", "2 3", dataset.ErrMissingCategory, ""},
		{grades, "grade=1 grade=02", "", "", dataset.ErrMissingCategory, ""},
		{grades, "", "", "2 4", dataset.ErrMissingClass, ""},
		{colours, "a colour=blue colour=green", "", "", dataset.ErrMissingCategory, `feature 2 is "colour=red"`},
		{colours, "a colour=blue colour=red", "", "", nil, ""},
		{colours, "a hue=blue hue=red", "", "", nil, ""}, // renamed
	} {
		err := c.d.SameOrder(strings.Fields(c.features), strings.Fields(c.targets), strings.Fields(c.classes))
		if !errors.Is(err, c.is) || c.is == nil && err != nil || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q, %q, %q: %v, want %v with %q", c.features, c.targets, c.classes, err, c.is, c.says)
		}
	}
	if grades.Features[0] != "grade=1.0" || grades.Classes[0] != "2.0" {
		t.Error("the names have changed")
	}
}

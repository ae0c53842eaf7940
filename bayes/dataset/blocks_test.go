package dataset

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// visits are rows of 19 patients, two at each time.
func visits(n int) *Dataset {
	d := &Dataset{Name: "visits", Features: []string{"x"}, Target: "y", X: mat.NewDense(n, 1, nil), Y: make([]float64, n)}
	for i := range n {
		d.Group = append(d.Group, fmt.Sprint("patient ", i*i%37))
		d.Order = append(d.Order, float64(i/2))
	}
	return d
}

func parts(p Parts) []*Dataset {
	return slices.DeleteFunc([]*Dataset{p.Train, p.Validation, p.Test}, func(d *Dataset) bool { return d == nil })
}

// each is an error unless every row is in one part, whose rows have its group and its place.
func each(t *testing.T, whole *Dataset, all []*Dataset) {
	t.Helper()
	seen := map[int]int{}
	for _, d := range all {
		for i := range d.Rows() {
			row := d.OriginalRow(i)
			seen[row]++
			if whole.Group != nil && d.Group[i] != whole.Group[row] || whole.Order != nil && d.Order[i] != whole.Order[row] {
				t.Errorf("row %d has the group or the place of another", row)
			}
		}
	}
	for row := range whole.Rows() {
		if seen[row] != 1 {
			t.Errorf("row %d is in %d parts", row, seen[row])
		}
	}
}

// No group is in two parts, nor a time, and the later ones test; the parts are as large as whole groups let them be.
func TestSplitOfBlocks(t *testing.T) {
	for _, by := range []string{"Group", "Order"} {
		for seed := range uint64(5) {
			d := visits(100)
			if by == "Group" {
				d.Order = nil
			} else {
				d.Group = nil
			}
			p, err := d.Split(Fractions{Train: .6, Validation: .15, Test: .25}, seed)
			if err != nil {
				t.Fatal(err)
			}
			each(t, d, parts(p))
			last := math.Inf(-1)
			groups := map[string]int{}
			for part, some := range parts(p) {
				if want := []float64{60, 15, 25}[part]; math.Abs(float64(some.Rows())-want) > 6 {
					t.Errorf("%s: part %d has %d rows, want about %v", by, part, some.Rows(), want)
				}
				if d.Order != nil {
					if first := slices.Min(some.Order); !(first > last) {
						t.Errorf("part %d begins at %v, the one before ends at %v", part, first, last)
					}
					last = slices.Max(some.Order)
				}
				for _, g := range some.Group {
					if before, known := groups[g]; known && before != part {
						t.Errorf("%s is in two parts", g)
					}
					groups[g] = part
				}
			}
		}
	}
}

// The same of folds, of which each has rows, also as many as there are groups or times.
func TestFoldsOfBlocks(t *testing.T) {
	one := visits(4)
	one.Group, one.Order = []string{"a", "a", "a", "a"}, nil
	_, err := Parts{Train: one}.Folds(one.Blocks(), 1)
	wantError(t, err, "1 folds of 4 rows in 1 groups")
	for _, by := range []string{"Group", "Order"} {
		d := visits(60)
		if by == "Group" {
			d.Order = nil
		} else {
			d.Group = nil
		}
		for _, k := range []int{2, 5, d.Blocks()} {
			train := *d
			folds, err := Parts{Train: &train}.Folds(k, 3)
			if err != nil {
				t.Fatal(err)
			}
			var validation []*Dataset
			for _, f := range folds {
				each(t, d, parts(f))
				validation = append(validation, f.Validation)
				for _, g := range f.Validation.Group {
					if slices.Contains(f.Train.Group, g) {
						t.Errorf("%s is in both parts of a fold", g)
					}
				}
				if d.Order != nil { // a span: no training row lies within it
					first, last := slices.Min(f.Validation.Order), slices.Max(f.Validation.Order)
					for _, at := range f.Train.Order {
						if at >= first && at <= last {
							t.Errorf("time %v trains within the span %v to %v", at, first, last)
						}
					}
				}
			}
			each(t, d, validation)
		}
		if _, err := (Parts{Train: d}).Folds(d.Blocks()+1, 3); err == nil || !strings.Contains(err.Error(), "at most") {
			t.Errorf("more folds than blocks: %v", err)
		}
	}
}

// Columns of groups and of dates are read, are no features, and rows that are dropped take theirs along.
func TestReadCSVAside(t *testing.T) {
	text := "who,a,when,y\nb,1,31.1.2020,3\nu,,1.2.2020,4\nb,2,1.2.2020 ,5\n"
	d, err := ReadCSV(strings.NewReader(text), CSVOptions{Group: "who", Ignore: []string{"when"}, Missing: MissingDropRow})
	if err != nil || !slices.Equal(d.Group, []string{"b", "b"}) || !slices.Equal(d.Features, []string{"a"}) {
		t.Errorf("%+v, %v", d, err)
	}
	d, err = ReadCSV(strings.NewReader(text), CSVOptions{Order: "when", Categorical: []string{"who"},
		Missing: MissingMean})
	if err != nil || len(d.Order) != 3 || d.Order[1]-d.Order[0] != 86400 || d.Order[2] != d.Order[1] ||
		!slices.Equal(d.Features, []string{"who=b", "who=u", "a"}) {
		t.Errorf("%+v, %v", d, err)
	}
	d, err = ReadCSV(strings.NewReader("a,t,y\n1,3,2\n1,10,2\n"), CSVOptions{Order: "t"})
	if err != nil || !slices.Equal(d.Order, []float64{3, 10}) {
		t.Errorf("%+v, %v", d, err)
	}
	for _, c := range []struct {
		text string
		opts CSVOptions
		want string
	}{
		{"a,t,y\n1,1/2/2020,2\n1,3/4/2020,2\n", CSVOptions{Order: "t"}, "may be"},
		{"a,t,y\n1,1/2/20,2\n1,3/4/20,2\n", CSVOptions{Order: "t"}, "may be"},
		{"a,t,y\n1,2020-01-31,2\n1,later,2\n", CSVOptions{Order: "t"}, `"2020-01-31" is no number`},
		{"a,t,y\n1,,2\n", CSVOptions{Order: "t"}, "row 0 (line 2)"},
		{"a,t,y\n1,2,2\n", CSVOptions{Order: "s"}, `"s"`},
		{"a,t,y\n1,2,2\n", CSVOptions{Group: "y"}, "target"},
		{"a,t,u,y\n1,2,3,2\n", CSVOptions{Group: "t", Order: "u"}, "both Group and Order"},
		{"t,y\n1,2\n", CSVOptions{Group: "t"}, "no feature"},
	} {
		d, err := ReadCSV(strings.NewReader(c.text), c.opts)
		if err == nil {
			err = d.Validate()
		}
		wantError(t, err, c.want)
	}
}

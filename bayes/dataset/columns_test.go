package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"gonum.org/v1/gonum/mat"
)

func textColumn(name string, levels string, codes ...int32) Column {
	return Column{Name: name, Levels: strings.Fields(levels), Codes: codes}
}

func numbers(name string, values ...float64) Column {
	return Column{Name: name, Numbers: values}
}

// Columns of a table in memory become the same data as a CSV file's of the same content.
func TestFromColumnsAsCSV(t *testing.T) {
	nan := math.NaN()
	days := textColumn("day", "1970-01-02T00:00:00Z 1970-01-01T00:00:00Z 1970-01-03T00:00:00Z 1970-01-04T00:00:00Z",
		0, 1, 2, 3)
	broken := Column{Name: "b", Fault: errors.New("is of lists")}
	for name, c := range map[string]struct {
		csv     string
		columns []Column
		opts    CSVOptions
	}{
		"numbers": {"a,b,y\n1.5,2,3\n4,5,6\n", []Column{numbers("a", 1.5, 4), numbers("b", 2, 5), numbers("y", 3, 6)},
			CSVOptions{}},
		"texts": {"town,y\nUlm,1\nRom,2\nUlm,3\n", []Column{textColumn("town", "Ulm Rom", 0, 1, 0), numbers("y", 1, 2, 3)},
			CSVOptions{Categorical: []string{EveryText}}},
		"numbers as categories": {"a,y\n2,1\n1,2\n2,3\n", []Column{numbers("a", 2, 1, 2), numbers("y", 1, 2, 3)},
			CSVOptions{Categorical: []string{"a"}}},
		"classes": {"a,y\n2,no\n1,yes\n2,no\n", []Column{numbers("a", 2, 1, 2), textColumn("y", "no yes", 0, 1, 0)},
			CSVOptions{Task: TaskByTarget}},
		"two numbers": {"a,y\n2,5\n1,7\n2,5\n", []Column{numbers("a", 2, 1, 2), numbers("y", 5, 7, 5)},
			CSVOptions{Task: TaskByTarget}},
		"spaces around texts": {"c,y\nblue,1\nred,2\nblue,3\n", []Column{{Name: "c", Codes: []int32{0, 1, 2},
			Levels: []string{" blue", "red", "blue "}}, numbers("y", 1, 2, 3)}, CSVOptions{Categorical: []string{EveryText}}},
		"booleans": {"a,y\ntrue,1\nfalse,2\n", []Column{textColumn("a", "true false", 0, 1), numbers("y", 1, 2)},
			CSVOptions{}},
		"rows dropped": {"a,town,y\n2,x,1\n,x,2\n2,,3\n4,y,4\n", []Column{numbers("a", 2, nan, 2, 4),
			textColumn("town", "x y", 0, 0, -1, 1), numbers("y", 1, 2, 3, 4)},
			CSVOptions{Missing: MissingDropRow, Categorical: []string{"town"}}},
		"means": {"a,town,y\n2,x,1\n,x,2\n2,,3\n5,y,4\n", []Column{numbers("a", 2, nan, 2, 5),
			textColumn("town", "x y", 0, 0, -1, 1), numbers("y", 1, 2, 3, 4)},
			CSVOptions{Missing: MissingMean, Categorical: []string{"town"}}},
		"order and group": {"day,a,y\n1970-01-02,1,2\n1970-01-01,3,4\n1970-01-03,3,4\n1970-01-04,3,4\n",
			[]Column{days, numbers("a", 1, 3, 3, 3), numbers("y", 2, 4, 4, 4)}, CSVOptions{Order: "day"}},
		"group": {"who,a,y\nx,1,2\ny,3,4\n", []Column{textColumn("who", "x y", 0, 1), numbers("a", 1, 3), numbers("y", 2, 4)},
			CSVOptions{Group: "who"}},
		"ignored": {"a,b,y\n1,2,3\n4,5,6\n", []Column{numbers("a", 1, 4), broken,
			numbers("y", 3, 6)}, CSVOptions{Ignore: []string{"b"}}},
	} {
		want, err := ReadCSV(strings.NewReader(c.csv), c.opts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := FromColumns(strings.Count(c.csv, "\n")-1, c.columns, c.opts)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Hash() != want.Hash() || !slices.Equal(got.Features, want.Features) || got.Task != want.Task ||
			got.Target != want.Target || !slices.Equal(got.Classes, want.Classes) || !slices.Equal(got.Group, want.Group) ||
			!slices.Equal(got.Order, want.Order) || got.OriginalRow(1) != want.OriginalRow(1) {
			t.Errorf("%s:\n%v%v, want\n%v%v", name, got, mat.Formatted(got.X), want, mat.Formatted(want.X))
		}
	}
}

// A number may be a column's name, and texts with leading zeros are codes.
func TestFromColumnsKeepsTypes(t *testing.T) {
	d, err := FromColumns(2, []Column{numbers("0", 1, 2), textColumn("1", "00037 37", 0, 1), numbers("2", 3, 4)},
		CSVOptions{Categorical: []string{EveryText}})
	if err != nil || !slices.Equal(d.Features, []string{"0", "1=00037", "1=37"}) || d.Target != "2" {
		t.Errorf("%v, %v", d, err)
	}
}

func TestFromColumnsRefuses(t *testing.T) {
	a, y := numbers("a", 1, 2), numbers("y", 1, 2)
	town := textColumn("town", "Ulm Rom", 0, 1)
	like := &Dataset{Features: []string{"town=Ulm"}, Target: "y", X: mat.NewDense(1, 1, nil), Y: []float64{1}}
	for want, c := range map[string]struct {
		columns []Column
		opts    CSVOptions
	}{
		"there are no rows":               {nil, CSVOptions{}},
		`"00037", which are codes`:        {[]Column{textColumn("zip", "00037 37", 0, 1), y}, CSVOptions{}},
		"Delimiter is set":                {[]Column{a, y}, CSVOptions{Delimiter: ';'}},
		"Encoding is set":                 {[]Column{a, y}, CSVOptions{Encoding: charmap.ISO8859_1}},
		`column "y" has 1 values`:         {[]Column{a, numbers("y", 1)}, CSVOptions{}},
		"column 1 has no name":            {[]Column{a, numbers(" ", 1, 2)}, CSVOptions{}},
		`row 1, column "a": the value is`: {[]Column{numbers("a", 1, math.NaN()), y}, CSVOptions{}},
		`row 1, column "a": the value`:    {[]Column{numbers("a", 1, math.Inf(1)), y}, CSVOptions{}},
		`cannot read "Ulm" as a number`:   {[]Column{town, y}, CSVOptions{}},
		`"-" as a number; write a null`: {[]Column{textColumn("a", "- 1", 0, 1), y},
			CSVOptions{Categorical: []string{EveryText}}},
		`the column "b" is of lists`: {[]Column{a, {Name: "b", Fault: errors.New("is of lists")}, y}, CSVOptions{}},
		"which is no feature":        {[]Column{textColumn("t", "1970-01-01T00:00:00.5Z", 0, 0), y}, CSVOptions{}},
		`row 1, column "town": `:     {[]Column{town, y}, CSVOptions{Like: like}},
		"every row needs one":        {[]Column{a, textColumn("who", "x", 0, -1), y}, CSVOptions{Group: "who"}},
		`there is no column "z"`:     {[]Column{a, y}, CSVOptions{Target: "z"}},
	} {
		if _, err := FromColumns(2, c.columns, c.opts); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

package dataset

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"gonum.org/v1/gonum/mat"
)

func TestString(t *testing.T) {
	d := people(t)
	want := `csv: 4 rows, 6 features, binary classification of ill, 2 classes: no, yes
row  age  sex=f  sex=m  town=x  town=y  town=z  ill
  0   20      1      0       1       0       0  yes
  1   60      0      1       0       1       0   no
  2   50      0      1       1       0       0   no
  3   30      0      1       0       0       1  yes
`
	if got := fmt.Sprint(d); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	new := readLike(t, "age,sex,town\n1234567.5,f,y\n0.000012345,m,x\n12.3456,m,x\n", CSVOptions{Like: d})
	part, err := new.Subset([]int{2, 1})
	if err != nil {
		t.Fatal(err)
	}
	want = `csv: 2 rows, 6 features, binary classification of ill, which is not known, 2 classes: no, yes
row        age  sex=f  sex=m  town=x  town=y  town=z
  2      12.35      0      1       1       0       0
  1  1.234e-05      0      1       1       0       0
`
	if got := part.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Numbers have as many digits as tell the rows of a column apart.
func TestStringDigits(t *testing.T) {
	d := &Dataset{Name: "far", Features: []string{"x"}, Target: "y",
		X: mat.NewDense(3, 1, []float64{1024.51, 1024.38, 1025}), Y: []float64{1.7e9 + .0213, 1.7e9 - .02, 1.7e9}}
	want := "row         x                y\n" +
		"  0  1024.510  1700000000.0213\n  1  1024.380  1699999999.9800\n  2      1025  1700000000.0000\n"
	if text := d.String(); !strings.HasSuffix(text, want) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	for _, c := range []struct {
		v, stdDev float64
		want      int
	}{
		{1.7e9, .02, 14}, {-1.7e9, .02, 14}, {1.5, .02, 5}, {1.5, 1, 4}, {15000, 1, 7}, {.0015, 1, 4}, {1e12, 1e-9, 15},
		{0, .1, 4}, {1, 0, 4}, {0, 0, 4}, {1, math.NaN(), 4}, {math.NaN(), 1, 4}, {1, math.Inf(1), 4}, {math.Inf(1), 1, 15},
	} {
		if got := Digits(c.v, c.stdDev, 4); got != c.want {
			t.Errorf("%v ± %v: %d digits, want %d", c.v, c.stdDev, got, c.want)
		}
	}
}

// Of wide and long tables as much is shown as fits in a line, and the rest is counted.
func TestStringWide(t *testing.T) {
	d := &Dataset{Name: "wide", Title: "wide and long", X: mat.NewDense(200, 40, nil), Y: make([]float64, 800)}
	for j := range 40 {
		d.Features = append(d.Features, fmt.Sprintf("f%d", j))
	}
	d.Features[2] = strings.Repeat("long ", 50)
	d.Targets = []string{"a", "b", "c", "d"}
	for i := range d.Y {
		d.Y[i] = float64(i)
	}
	text := d.String()
	lines := strings.Split(text, "\n")
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > lookWidth {
			t.Errorf("a line has %d characters: %s", n, line)
		}
	}
	const first = "wide (wide and long): 200 rows, 40 features, regression of a, b, c, …\n"
	if len(lines) != 9 || !strings.HasPrefix(text, first) ||
		!strings.HasSuffix(text, "\nnot shown: 195 rows, 26 features\n") ||
		!strings.HasSuffix(lines[6], "  16  17  18") || !strings.Contains(text, "f1  long long long long lon…  f3") {
		t.Errorf("got\n%s", text)
	}
	d.Features[0] = strings.Repeat("x", 300)
	if err := d.Validate(); err != nil || !strings.Contains(d.String(), " xxxxxxxxxxxxxxxxxxxxxxx… ") {
		t.Errorf("%v\n%s", err, d)
	}
}

// What Markdown would read as marks, and what would break a line, is shown as it is or left out.
func TestMarkdown(t *testing.T) {
	d := &Dataset{
		Name: "mine\n# head", Task: Classification, Features: []string{"a|b", "_c_\r\n"}, Target: "<b>",
		Classes: []string{"x\x1b[31m", "$y$", "z\u202e"}, X: mat.NewDense(3, 2, []float64{1, 2.5, 3, 4, 5, 6}),
		Y: []float64{0, 1, 2},
	}
	want := `mine \# head: 3 rows, 2 features, classification of \<b\>, 3 classes: x \[31m, \$y\$, z 

| row | a\|b | \_c\_   | \<b\> |
|---:|---:|---:|---:|
| 0 | 1 | 2.5 | x \[31m |
| 1 | 3 | 4 | \$y\$ |
| 2 | 5 | 6 | z  |

`
	if got := d.Markdown(); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if got := fmt.Sprint(d); strings.ContainsAny(got, "\x1b\r\u202e") || strings.Count(got, "\n") != 5 {
		t.Errorf("got %q", got)
	}
}

// A table that is not valid is described, too.
func TestStringOfBadTable(t *testing.T) {
	for want, d := range map[string]*Dataset{
		"features X are nil":     {Name: "none"},
		"[2, 1] but Y is [3]":    {Features: []string{"a"}, X: mat.NewDense(2, 1, nil), Y: make([]float64, 3)},
		"[2, 1] but there are 0": {X: mat.NewDense(2, 1, nil)},
		"| 0 | 0 | 7 |": {
			Task: Classification, Features: []string{"a"}, Classes: []string{"u", "v"}, X: mat.NewDense(1, 1, nil),
			Y: []float64{7},
		},
	} {
		if got := d.Markdown(); !strings.Contains(strings.ReplaceAll(got, "\\", ""), want) {
			t.Errorf("got %q, want one that says %q", got, want)
		}
	}
	var none *Dataset
	if got := fmt.Sprint(none); got != "<nil>" {
		t.Errorf("a nil table is %q", got)
	}
}

package dataset

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// No embedded set has a feature that gives its target, or counts its rows.
func TestLeaksNotInEmbedded(t *testing.T) {
	for _, name := range names() {
		if targets, rows := MustLoad(name).Leaks(); targets != nil || rows != nil {
			t.Errorf("%s: %v %v", name, targets, rows)
		}
	}
}

// The target again, in other units, digits, notation or words, is named, and so is what numbers the rows; what is only
// close to the target is not.
func TestLeaks(t *testing.T) {
	rng := newRand("leaks", 1, 0)
	const n = 200
	type made = func(i int, y float64) string
	number := func(format string, f func(i, y float64) float64) made {
		return func(i int, y float64) string { return fmt.Sprintf(format, f(float64(i), y)) }
	}
	shuffled := func(i, _ float64) float64 { return math.Mod(37*i, 1009) }
	for _, c := range []struct {
		name    string
		feature made
		class   bool
		column  string // of the feature; "": "f"
		want    string // "": no leak
	}{
		{"the target", number("%.2f", func(_, y float64) float64 { return y }), false, "", "in all 200 rows"},
		{"other currency", number("%.2f", func(_, y float64) float64 { return 1.0837 * y }), false, "", `"y" = 0.92276 "f"`},
		{"Fahrenheit", number("%.1f", func(_, y float64) float64 { return 32 + 1.8*y }), false, "", "gives the target"},
		{"falling", number("%.3f", func(_, y float64) float64 { return -y / 7 }), false, "", "gives the target"},
		{"logarithm", number("%.5f", func(_, y float64) float64 { return math.Log10(y) }), false, "", `log "y" = 2.3026 "f"`},
		{"square", number("%.6g", func(_, y float64) float64 { return y * y }), false, "", `log "y" = 0.5 log "f"`},
		{"words", func(_ int, y float64) string { return []string{"nein", "ja"}[int(y)] }, true, "",
			`each of its 2 values stands for one of "y"`},
		{"a code", number("%.0f", func(_, y float64) float64 { return 7 - y }), true, "", "gives the target"},
		{"from 1", number("%.0f", func(i, _ float64) float64 { return i + 1 }), false, "", "counts the rows"},
		{"from 0", number("%.0f", func(i, _ float64) float64 { return i }), true, "Unnamed: 0", "counts the rows"},
		{"some numbers", number("%.0f", shuffled), false, "customerId",
			"number of a row or case"},

		{"close", number("%.4f", func(_, y float64) float64 { return y + .1*rng.NormFloat64() }), false, "", ""},
		{"coarse", number("%.0f", func(_, y float64) float64 { return y / 30 }), false, "", ""},
		{"list price", func(i int, y float64) string {
			if i%10 == 3 {
				y += float64(i)
			}
			return fmt.Sprintf("%.2f", y)
		}, false, "", ""},
		{"a good test", func(i int, y float64) string {
			if i%20 == 3 {
				y = 1 - y
			}
			return fmt.Sprint(y)
		}, true, "", ""},
		{"a threshold", number("%.4f", func(_, y float64) float64 { return y + .9*rng.Float64() }), true, "", ""},
		{"whole numbers", number("%.0f", shuffled), false, "", ""},
		{"a patient twice", number("%.0f", func(i, _ float64) float64 { return math.Floor(i / 2) }), false, "id", ""},
	} {
		column := "f"
		if c.column != "" {
			column = c.column
		}
		text := column + ",other,y\n"
		for i := range n {
			y, shown := 10+90*rng.Float64(), ""
			y = math.Round(100*y) / 100
			shown = fmt.Sprint(y)
			if c.class {
				y = float64(rng.IntN(2))
				shown = []string{"no", "yes"}[int(y)]
			}
			text += fmt.Sprintf("%s,%.3f,%s\n", c.feature(i, y), rng.NormFloat64(), shown)
		}
		opts := CSVOptions{Task: TaskByTarget}
		if c.name == "words" {
			opts.Categorical = []string{"f"}
		}
		d, err := ReadCSV(strings.NewReader(text), opts)
		if err != nil {
			t.Fatal(c.name, err)
		}
		parts, err := d.SplitDistinct(Fractions{Train: .8, Test: .2}, 1)
		if err != nil {
			t.Fatal(c.name, err)
		}
		for i, part := range []*Dataset{d, parts.Train} { // rows that are left out and shuffled do not matter
			targets, rows := part.Leaks()
			leaks := append(targets, rows...)
			if c.want == "" {
				if len(leaks) > 0 {
					t.Errorf("%s: %v", c.name, leaks)
				}
				continue
			}
			if len(leaks) != 1 {
				t.Fatalf("%s: %v", c.name, leaks)
			}
			text := leaks[0].Error()
			if !strings.Contains(text, strconv.Quote(column)) || !strings.Contains(text, "Ignore") ||
				i == 0 && !strings.Contains(text, c.want) || (targets != nil) != strings.Contains(text, "gives the target") {
				t.Errorf("%s: %v, want %q", c.name, leaks, c.want)
			}
		}
	}
}

// Copies among other rows are counted, and left out as evidence, but not where chance makes them.
func TestCopiesIn(t *testing.T) {
	zero := &Dataset{X: mat.NewDense(1, 1, []float64{0}), Y: []float64{2}, Features: []string{"a"}, Target: "y"}
	minus := &Dataset{X: mat.NewDense(1, 1, []float64{math.Copysign(0, -1)}), Y: []float64{2}, Features: []string{"a"},
		Target: "y"}
	if got := minus.CopiesIn(zero); got != 1 {
		t.Errorf("a row with -0 in place of 0 is %d copies, want 1", got)
	}
	for _, c := range []struct {
		few              bool
		copies, distinct int
	}{{false, 150, 60}, {true, 0, 300}} {
		d := copied(60, 5, false, c.few)
		rows := inOrder(300)
		half, err := d.Subset(rows[:150])
		if err != nil {
			t.Fatal(err)
		}
		rest, err := d.Subset(rows[150:])
		if err != nil {
			t.Fatal(err)
		}
		if got := rest.CopiesIn(half); got != c.copies {
			t.Errorf("%d rows are copies, want %d", got, c.copies)
		}
		if one, err := d.Distinct(); err != nil || one.Rows() != c.distinct {
			t.Errorf("%d rows are distinct, want %d (%v)", one.Rows(), c.distinct, err)
		}
	}
}

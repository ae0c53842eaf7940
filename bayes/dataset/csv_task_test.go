package dataset

import (
	"slices"
	"strings"
	"testing"
)

// TaskByTarget takes texts, true and false, and two numbers as classes, and other numbers as they are.
func TestTaskByTarget(t *testing.T) {
	for _, c := range []struct {
		target  string // the column, a row each
		task    Task
		classes string
		y       []float64
	}{
		{"1.5 2 3", Regression, "", []float64{1.5, 2, 3}},
		{"0 1 1.0", BinaryClassification, "0 1", []float64{0, 1, 1}},
		{"2 -1 2", BinaryClassification, "-1 2", []float64{1, 0, 1}},
		{"no yes no", BinaryClassification, "no yes", []float64{0, 1, 0}},
		{"True FALSE True", BinaryClassification, "FALSE True", []float64{1, 0, 1}},
		{"b a c", Classification, "a b c", []float64{1, 0, 2}},
		{"a 7 a", BinaryClassification, "7 a", []float64{1, 0, 1}},
		{"7 7 7", Regression, "", []float64{7, 7, 7}},
		{"1% 2% 3%", Regression, "", []float64{1, 2, 3}},
	} {
		text := "x,y\n"
		for _, value := range strings.Fields(c.target) {
			text += "1," + value + "\n"
		}
		d, err := ReadCSV(strings.NewReader(text), CSVOptions{Task: TaskByTarget})
		if err != nil {
			t.Errorf("%s: %v", c.target, err)
			continue
		}
		if got := strings.Join(d.Classes, " "); d.Task != c.task || got != c.classes || !slices.Equal(d.Y, c.y) {
			t.Errorf("%s: %v of %q, %v; want %v of %q, %v", c.target, d.Task, got, d.Y, c.task, c.classes, c.y)
		}
	}
	for text, want := range map[string]string{
		"x,y\n1,a\n1,a\n":          "there is nothing to classify",
		"x,y\n1,2020-01-02\n1,3\n": "is a date",
	} {
		if _, err := ReadCSV(strings.NewReader(text), CSVOptions{Task: TaskByTarget}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %q", text, err, want)
		}
	}
	two := CSVOptions{Task: TaskByTarget, Targets: []string{"a", "b"}}
	if d, err := ReadCSV(strings.NewReader("a,b,x\n0,1,2\n1,0,3\n"), two); err != nil || d.Task != Regression {
		t.Errorf("two targets: %v, %v", d, err)
	}
	given := CSVOptions{Task: TaskByTarget, Classes: []string{"yes", "no"}}
	if d, err := ReadCSV(strings.NewReader("x,y\n1,no\n2,yes\n"), given); err != nil || d.Task != BinaryClassification ||
		!slices.Equal(d.Y, []float64{1, 0}) {
		t.Errorf("classes given: %v, %v", d, err)
	}
}

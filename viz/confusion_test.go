package viz_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/viz"
)

// What is no confusion matrix is an error that names the fault.
func TestConfusionFaults(t *testing.T) {
	for _, c := range []struct {
		counts  [][]float64
		classes []string
		says    string
	}{
		{[][]float64{{1}}, nil, "1 classes"},
		{[][]float64{{1, 2}, {3}}, nil, "counts[1] has 1 columns"},
		{[][]float64{{1, 2}, {3, -4}}, nil, "counts[1][1] = -4"},
		{[][]float64{{1, math.NaN()}, {3, 4}}, nil, "counts[0][1] = NaN"},
		{[][]float64{{0, 0}, {0, 0}}, nil, "all counts of 2 classes are 0"},
		{[][]float64{{1, 2}, {3, 4}}, []string{"a"}, "2 classes with 1 names"},
	} {
		_, err := viz.Confusion(c.counts, c.classes, viz.Frame{})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v, want one that says %q", err, c.says)
		}
	}
}

// Classes are called by their names, beside the rows and below the columns, also long ones.
func TestConfusionNames(t *testing.T) {
	for _, names := range [][]string{{"no", "yes"}, {"Iris versicolor", "Iris virginica"}} {
		f, err := viz.Confusion([][]float64{{3, 1}, {0, 4}}, names, viz.Frame{})
		if err != nil {
			t.Fatal(err)
		}
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if got := strings.Count(string(svg), ">"+name); got != 2 {
				t.Errorf("%q is written %d times", name, got)
			}
		}
	}
}

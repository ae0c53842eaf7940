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
		counts [][]float64
		says   string
	}{
		{[][]float64{{1}}, "1 classes"},
		{[][]float64{{1, 2}, {3}}, "counts[1] has 1 columns"},
		{[][]float64{{1, 2}, {3, -4}}, "counts[1][1] = -4"},
		{[][]float64{{1, math.NaN()}, {3, 4}}, "counts[0][1] = NaN"},
		{[][]float64{{0, 0}, {0, 0}}, "all counts of 2 classes are 0"},
	} {
		_, err := viz.Confusion(c.counts, viz.Frame{})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v, want one that says %q", err, c.says)
		}
	}
}

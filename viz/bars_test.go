package viz_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/viz"
)

// What cannot be drawn as bars is an error that names the fault; a value that is not finite is a bar without a length.
func TestBarsFaults(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		names         []string
		values, marks []float64
		says          string
	}{
		{nil, nil, nil, "0 names of 0 values"},
		{[]string{"a"}, []float64{1, 2}, nil, "1 names of 2 values"},
		{[]string{"a"}, []float64{nan}, nil, "no bar of 1 has a length"},
		{[]string{"a"}, []float64{1}, []float64{1, 2}, "2 Marks of 1 bars"},
	} {
		_, err := viz.Bars(c.names, c.values, viz.BarOptions{Marks: c.marks})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v, want one that says %q", err, c.says)
		}
	}
	for most, says := range map[float64]string{-1: "Most = -1", math.Inf(1): "Most = +Inf", nan: "Most = NaN"} {
		_, err := viz.Bars([]string{"a"}, []float64{1}, viz.BarOptions{Most: most})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one that says %q", err, says)
		}
	}
	fig, err := viz.Bars([]string{"a", "b"}, []float64{math.Inf(1), 2}, viz.BarOptions{Marks: []float64{1, nan}})
	if err != nil {
		t.Fatal(err)
	}
	svg, err := fig.SVG()
	if err != nil || !strings.Contains(string(svg), "not finite") {
		t.Errorf("a value that is not finite: %v", err)
	}
}

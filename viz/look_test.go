package viz_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/viz"
)

// No text of a figure stands on another or out of the figure, or is too small to read, however wide it is, and in grids
// of narrow panels with long labels.
func TestTextsAreLegible(t *testing.T) {
	check := func(name string, fig *viz.Figure, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, fault := range viz.TextFaults(fig) {
			t.Errorf("%s: %s", name, fault)
		}
	}
	for _, s := range gallery() {
		fig, err := s.make()
		check(s.name, fig, err)
	}
	for _, name := range []string{strings.Repeat("wide", 60), strings.Repeat("wide words ", 30)} { // are cut
		fig, err := viz.Bars([]string{name, "b"}, []float64{1, 2}, viz.BarOptions{Frame: viz.Frame{Title: name, XLabel: name,
			YLabel: name}})
		check("bars", fig, err)
	}
	const long, label = "a title that is much too long for the panel", "a long label of an axis [unit]"
	for width := 240; width <= 640; width += 100 {
		for height := 240; height <= 420; height += 90 {
			var traces []viz.Trace
			for k, name := range []string{"particles (area: weight)", "density", "50 % of the mass", "99 %"} {
				traces = append(traces, viz.Trace{Name: name, Series: viz.Series{Step: []float64{1.7e9, 1.7e9 + .03},
					Value: []float64{1, math.Pow(10, float64(k))}}})
			}
			var figures []*viz.Figure
			for _, log := range []bool{true, false} {
				fig, err := viz.Traces(traces, viz.TraceOptions{LogY: log, Frame: viz.Frame{Title: long, XLabel: label,
					YLabel: label, Width: width, Height: height}})
				check("traces", fig, err)
				figures = append(figures, fig)
			}
			for _, opt := range []viz.GridOptions{{}, {Columns: 3}, {Columns: 5, SharedX: true, SharedY: true}} {
				for k := range figures {
					fig, err := viz.Grid(opt, slices.Repeat(figures[k:k+1], 5)...)
					check(fmt.Sprintf("grid %+v of %d x %d", opt, width, height), fig, err)
				}
			}
		}
	}
}

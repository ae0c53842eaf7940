package viz_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/viz"
)

// panels are traces named a and b over ranges of their own.
func panels(t *testing.T, n int, opt viz.TraceOptions) []*viz.Figure {
	t.Helper()
	var out []*viz.Figure
	for k := range n {
		scale := math.Pow(10, float64(k))
		fig, err := viz.Traces([]viz.Trace{
			{Name: "method a", Series: viz.Series{Step: []float64{1, 2, 3 + float64(k)}, Value: []float64{scale, 2, 3}}},
			{Name: "method b", Series: viz.Series{Step: []float64{1, 2, 3}, Value: []float64{3, 2, scale}}},
		}, opt)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fig)
	}
	return out
}

// What all figures of a grid have stands there once, and names and numbers at its outside.
func TestGridShares(t *testing.T) {
	frame := viz.Frame{XLabel: "seconds", YLabel: "NLPD", Title: "a set"}
	four := panels(t, 4, viz.TraceOptions{Frame: frame})
	for _, c := range []struct {
		opt    viz.GridOptions
		counts map[string]int
		width  string
	}{
		{viz.GridOptions{Columns: 2}, map[string]int{"method a": 1, "seconds": 4, "NLPD": 4, "a set": 4}, `width="622.5pt"`},
		{viz.GridOptions{Columns: 2, SharedX: true, SharedY: true}, map[string]int{"seconds": 2, "NLPD": 2, ">100<": 2},
			`width="622.5pt"`},
		{viz.GridOptions{Columns: 4}, map[string]int{"seconds": 4}, `width="621pt"`}, // 3 columns: 4 would be too narrow
		{viz.GridOptions{}, map[string]int{"seconds": 4}, `width="480pt"`},
		{viz.GridOptions{Columns: 2, ColumnNames: []string{"left", "right"}, RowNames: []string{"upper", "lower"}},
			map[string]int{"left": 1, "right": 1, "upper": 1, "lower": 1}, `width="622.5pt"`},
	} {
		svg := svgOf(viz.Grid(c.opt, four...))
		for text, want := range c.counts {
			if got := strings.Count(svg, text); got != want {
				t.Errorf("%+v: %q stands there %d times, want %d", c.opt, text, got, want)
			}
		}
		if !strings.Contains(svg, c.width) {
			t.Errorf("%+v: not %s: %.200s", c.opt, c.width, svg)
		}
	}
	// The figures stay as they were.
	alone := svgOf(four[0], nil)
	if strings.Count(alone, "method a") != 1 || strings.Count(alone, "seconds") != 1 {
		t.Error("a figure has lost its legend or label to a grid")
	}
	// Another look of the same name is no shared legend.
	svg := svgOf(viz.Grid(viz.GridOptions{}, four[0], one(t, "method b", "method a")))
	if strings.Count(svg, "method a") != 2 {
		t.Error("two looks of one name share a legend")
	}
}

// one is a figure with traces in this order.
func one(t *testing.T, names ...string) *viz.Figure {
	t.Helper()
	var traces []viz.Trace
	for _, name := range names {
		traces = append(traces, viz.Trace{Name: name, Series: viz.Series{Value: []float64{1, 2}}})
	}
	fig := computetest.Must(viz.Traces(traces, viz.TraceOptions{}))
	return fig
}

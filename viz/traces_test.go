package viz_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/viz"
)

func TestTraces(t *testing.T) {
	one := viz.Trace{Name: "OHSMC", Series: viz.Series{Value: []float64{.1, .5, math.NaN(), .9}}}
	fig,
		err := viz.Traces([]viz.Trace{one, {Name: "SMC", Series: viz.Series{Step: []float64{1, 9}, Value: []float64{0, 1}}}},
		viz.TraceOptions{Truth: 1, TruthName: "truth"})
	if err != nil {
		t.Fatal(err)
	}
	svg, err := fig.SVG()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"OHSMC", "SMC", "truth", "Traces", "1 non-finite"} {
		if !strings.Contains(string(svg), text) {
			t.Errorf("the figure does not say %q", text)
		}
	}
	back := []viz.Trace{{Name: "outline", Series: viz.Series{Step: []float64{1, 2, 1, 1}, Value: []float64{0, 1, 2, 0}}}}
	if fig, err := viz.Traces(back, viz.TraceOptions{Outlines: true}); err != nil || fig == nil {
		t.Errorf("an outline: %v", err)
	}
	fig, err = viz.Traces([]viz.Trace{{Name: "one point", Series: viz.Series{Value: []float64{1}}}}, viz.TraceOptions{})
	if dot := "fill:#0072B2"; !strings.Contains(svgOf(t, fig, err), dot) {
		t.Errorf("a trace of one point is not drawn: there is no %s", dot)
	}
	fig, err = viz.Traces([]viz.Trace{{Name: "band", Series: viz.Series{Value: []float64{1, 2}}, Lower: []float64{0, -40},
		Upper: []float64{3, 4}}}, viz.TraceOptions{})
	if text := svgOf(t, fig, err); !strings.Contains(text, "fill-opacity:0.16") || !strings.Contains(text, "−40") {
		t.Errorf("a band is not drawn, or the axis does not hold it:\n%s", text)
	}
	for _, values := range [][]float64{{1e-300, 1e99}, {5e-324, 1}, {5e-324, 5e-324}} { // the ratio is no number
		fig, err := viz.Traces([]viz.Trace{{Name: "a", Series: viz.Series{Value: values}}}, viz.TraceOptions{LogY: true})
		checkCoordinates(t, []byte(svgOf(t, fig, err)))
	}
}

// A trace with a style has its colour and pattern wherever it stands, so that a method looks the same in all figures.
func TestTraceStyle(t *testing.T) {
	third := viz.Trace{Name: "third", Series: viz.Series{Value: []float64{1, 2}}, Style: 3}
	fig, err := viz.Traces([]viz.Trace{third}, viz.TraceOptions{})
	if svg := svgOf(t, fig, err); !strings.Contains(svg, "#009E73") || strings.Contains(svg, "#0072B2") {
		t.Error("a trace of Style 3 has not the third colour alone")
	}
}

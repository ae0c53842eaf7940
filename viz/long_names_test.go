package viz_test

import (
	"strings"
	"testing"

	"gobnn/viz"
)

// Names of any length leave room for the data: they are cut, with an ellipsis, and nothing is drawn at NaN.
func TestLongNames(t *testing.T) {
	word, words := strings.Repeat("wide", 60), strings.Repeat("wide words ", 30)
	frame := viz.Frame{Title: word, XLabel: words, YLabel: word}
	for _, name := range []string{word, words, "short"} {
		f, err := viz.Bars([]string{name, "b"}, []float64{1, 2}, viz.BarOptions{Frame: frame})
		if err != nil {
			t.Fatal(err)
		}
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), word) {
			t.Errorf("bars named %.9s...: the drawing has NaN, or a name wider than itself", name)
		}
		if !strings.Contains(string(svg), "…") {
			t.Errorf("bars named %.9s...: nothing is cut", name)
		}
	}
}

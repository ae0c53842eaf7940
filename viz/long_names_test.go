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
		figures := map[string]func() (*viz.Figure, error){
			"bars": func() (*viz.Figure, error) {
				return viz.Bars([]string{name, "b"}, []float64{1, 2}, viz.BarOptions{Frame: frame})
			},
			"forest": func() (*viz.Figure, error) {
				return viz.Estimates(frame, viz.Estimate{Name: name, Upper: 1, Group: name},
					viz.Estimate{Name: "b", Upper: 2, Group: "other"})
			},
		}
		for kind, figure := range figures {
			f, err := figure()
			if err != nil {
				t.Fatal(err)
			}
			svg, err := f.SVG()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), word) {
				t.Errorf("%s named %.9s...: the drawing has NaN, or a name wider than itself", kind, name)
			}
			if cut := strings.Contains(string(svg), "…"); !cut {
				t.Errorf("%s named %.9s...: nothing is cut", kind, name)
			}
		}
	}
}

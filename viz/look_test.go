package viz_test

import (
	"image/color"
	"slices"
	"strings"
	"testing"

	"gobnn/viz"

	"gonum.org/v1/plot/vg"
)

// Each colour of a legend is in the picture, and each of the picture, but for black, white and the grid's grey, in the
// legend: or else a note below the title says what it is.
func TestLegendIsThePicture(t *testing.T) {
	plain := []color.NRGBA{{A: 255}, {R: 255, G: 255, B: 255, A: 255}, {R: 0xE6, G: 0xE6, B: 0xE6, A: 255}}
	for _, s := range gallery() {
		fig, err := s.make()
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		for i, l := range viz.Looks(fig, 400, 300) {
			if len(l.Legend) == 0 {
				continue
			}
			for colour := range l.Legend {
				if !l.Picture[colour] {
					t.Errorf("%s, panel %d: the legend %q has %v, which is not in the picture", s.name, i, l.Labels, colour)
				}
			}
			if strings.Contains(strings.Join(l.Notes, ""), "faint") { // which it explains
				continue
			}
			for colour := range l.Picture {
				if !l.Legend[colour] && !slices.Contains(plain, colour) {
					t.Errorf("%s, panel %d: the picture has %v, which is not in the legend %q", s.name, i, colour, l.Labels)
				}
			}
			if l.Image && !l.Key {
				t.Errorf("%s, panel %d: nothing says what the colours of the ground are", s.name, i)
			}
		}
	}
}

// No mark stands out of its axes, also where the marks of several traces are moved so that they stand beside each
// other.
func TestMarksAreInsideTheAxes(t *testing.T) {
	figures := map[string]*viz.Figure{}
	for _, s := range gallery() {
		fig, err := s.make()
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		figures[s.name] = fig
	}
	for name, opt := range map[string]viz.TraceOptions{"eight": {}} {
		var traces []viz.Trace
		for range 8 {
			traces = append(traces, viz.Trace{Series: viz.Series{Step: []float64{1, 10, 200}, Value: []float64{0, 5, 5}}})
		}
		fig, err := viz.Traces(traces, opt)
		if err != nil {
			t.Fatal(err)
		}
		figures[name] = fig
	}
	var bands []*viz.Figure
	for _, wide := range []float64{1, 1, 30} { // of which the last is cut
		fig, err := viz.PredictiveBand([]float64{-2, 2}, []float64{0, 0}, []float64{wide, 1}, viz.BandOptions{
			TrainX: []float64{-1, 1}, TrainY: []float64{0, 0}, Frame: viz.Frame{Width: 300}})
		if err != nil {
			t.Fatal(err)
		}
		bands = append(bands, fig)
	}
	cut, err := viz.Grid(viz.GridOptions{SharedY: true}, bands...)
	if err != nil {
		t.Fatal(err)
	}
	figures["a cut band"] = cut
	delete(figures, "particles_many") // the user's lattice is the axes, also where it is narrower than the particles
	for name, fig := range figures {
		for _, width := range []float64{150, 400} {
			for i, l := range viz.Looks(fig, vg.Length(width), 260) {
				if l.Outside > 0 {
					t.Errorf("%s, panel %d, %v points wide: %d marks stand out of the axes", name, i, width, l.Outside)
				}
			}
		}
	}
}

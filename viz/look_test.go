package viz_test

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/viz"

	"gonum.org/v1/plot/vg"
)

// Each colour of a legend is in the picture, and each of the picture, but for black, white and the grid's grey, in the
// legend: or else a note below the title says what it is.
func TestLegendIsThePicture(t *testing.T) {
	plain := []color.NRGBA{{A: 255}, {R: 255, G: 255, B: 255, A: 255}, {R: 0xE6, G: 0xE6, B: 0xE6, A: 255}}
	for _, s := range gallery() {
		fig := computetest.Must(s.make())
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

// No mark stands out of its axes, also of a band that is cut to the range of its neighbours.
func TestMarksAreInsideTheAxes(t *testing.T) {
	cut := specimen{name: "a cut band", make: func() (*viz.Figure, error) {
		var bands []*viz.Figure
		for _, wide := range []float64{1, 1, 30} {
			fig, err := viz.PredictiveBand([]float64{-2, 2}, []float64{0, 0}, []float64{wide, 1}, viz.BandOptions{
				TrainX: []float64{-1, 1}, TrainY: []float64{0, 0}, Frame: viz.Frame{Width: 300}})
			if err != nil {
				return nil, err
			}
			bands = append(bands, fig)
		}
		return viz.Grid(viz.GridOptions{SharedY: true}, bands...)
	}}
	for _, s := range append(gallery(), cut) {
		fig := computetest.Must(s.make())
		if s.name == "particles_many" { // the user's lattice is the axes, also where it is narrower than the particles
			continue
		}
		for _, width := range []vg.Length{150, 400} {
			for i, l := range viz.Looks(fig, width, 260) {
				if l.Outside > 0 {
					t.Errorf("%s, panel %d, %v points wide: %d marks stand out of the axes", s.name, i, width, l.Outside)
				}
			}
		}
	}
}

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

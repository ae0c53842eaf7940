package viz_test

import (
	"bytes"
	"image/png"
	"math"
	"strings"
	"testing"

	"gobnn/viz"
)

// A figure of twice the font size is that of half the width and height, seen from twice as near.
func TestFontSize(t *testing.T) {
	figure := func(width, height int) *viz.Figure {
		fig, err := viz.Bars([]string{"oak", "fir"}, []float64{2.5, 1}, viz.BarOptions{
			Frame: viz.Frame{Title: "Trees", XLabel: "height [m]", Width: width, Height: height},
		})
		if err != nil {
			t.Fatal(err)
		}
		return fig
	}
	sized := func(fig *viz.Figure, points float64) *viz.Figure {
		t.Helper()
		out, err := fig.WithFontSize(points)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	encoded := func(fig *viz.Figure, encode func(*viz.Figure) ([]byte, error)) []byte {
		t.Helper()
		data, err := encode(fig)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	whole := figure(1000, 600)
	twice, half := sized(whole, 19), figure(500, 300)
	picture := encoded(twice, (*viz.Figure).PNG)
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	if size := decoded.Bounds().Size(); size.X != 2000 || size.Y != 1200 {
		t.Errorf("a PNG of %v pixels, want 2000 x 1200", size)
	}
	small := encoded(half, (*viz.Figure).PNG)
	if unlike := unlikeness(t, small, picture); unlike > .001 {
		t.Errorf("a share of %.4f is unlike a figure of half the size", unlike)
	}
	if unlike := unlikeness(t, small, encoded(whole, (*viz.Figure).PNG)); unlike < .02 {
		t.Errorf("a share of only %.4f of a figure with text of the usual size is unlike one of half the size", unlike)
	}
	// In SVG and PDF all of it is in a frame that is scaled.
	svg, scaled := string(encoded(half, (*viz.Figure).SVG)), string(encoded(twice, (*viz.Figure).SVG))
	if !strings.Contains(scaled, "scale(2,2)") && !strings.Contains(scaled, "scale(2)") {
		t.Errorf("an SVG that is not scaled: %.600s", scaled)
	}
	texts, _, _ := svgTexts(t, []byte(svg))
	same, width, height := svgTexts(t, []byte(scaled))
	if strings.Join(texts, "|") != strings.Join(same, "|") || width != 750 || height != 450 {
		t.Errorf("an SVG of %v x %v points with the texts %q, want 750 x 450, %q", width, height, same, texts)
	}
	if page := content(t, encoded(twice, (*viz.Figure).PDF)); !strings.Contains(page, "2.00000 0.00000 0.00000 2.00000") {
		t.Errorf("a PDF that is not scaled: %.600s", page)
	}
	if again := sized(twice, 9.5); !bytes.Equal(encoded(again, (*viz.Figure).PNG), encoded(whole, (*viz.Figure).PNG)) {
		t.Error("a figure that has its usual font size again is another")
	}
}

// All kinds of figures take a font size, and so does a grid of them.
func TestFontSizeOfAll(t *testing.T) {
	for _, s := range gallery() {
		fig, err := s.make()
		if err != nil {
			t.Fatal(err)
		}
		for _, points := range []float64{7, 12} {
			other, err := fig.WithFontSize(points)
			if err != nil {
				t.Errorf("%s, %g points: %v", s.name, points, err)
				continue
			}
			svg, err := other.SVG()
			if err != nil {
				t.Fatal(err)
			}
			checkCoordinates(t, svg)
		}
	}
}

func TestFontSizeBadInput(t *testing.T) {
	fig, err := barsOfThree()
	if err != nil {
		t.Fatal(err)
	}
	big, err := fig.WithFontSize(12)
	if err != nil {
		t.Fatal(err)
	}
	size := func(points float64) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return fig.WithFontSize(points) }
	}
	var none *viz.Figure
	for want, call := range map[string]func() (*viz.Figure, error){
		"font size of 5 points: it must be within 6 and 24":  size(5),
		"font size of 25 points: it must be within 6 and 24": size(25),
		"font size of NaN points":                            size(math.NaN()),
		"need a height of":                                   size(24),
		"figure 1 of the grid has a font size of its own": func() (*viz.Figure, error) {
			return viz.Grid(viz.GridOptions{}, fig, big)
		},
		"the figure is nil or empty": func() (*viz.Figure, error) { return none.WithFontSize(12) },
	} {
		if _, err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

package viz_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"html"
	"image"
	"image/png"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/viz"
)

// svgTexts parses the SVG, which must be well-formed, and gives its texts and the size it states in points.
func svgTexts(t *testing.T, data []byte) (texts []string, width, height float64) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(data))
	inText := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts, width, height
		}
		if err != nil {
			t.Fatalf("SVG is not well-formed: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			inText = e.Name.Local == "text"
			for _, a := range e.Attr {
				if e.Name.Local == "svg" && (a.Name.Local == "width" || a.Name.Local == "height") {
					v := computetest.Must(strconv.ParseFloat(strings.TrimSuffix(a.Value, "pt"), 64))
					if a.Name.Local == "width" {
						width = v
					} else {
						height = v
					}
				}
			}
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				texts = append(texts, html.UnescapeString(string(e)))
			}
		}
	}
}

// embedded is the bytes of an image, which may spell anything.
var embedded = regexp.MustCompile(`base64,[^"]*`)

// checkCoordinates wants numbers only.
func checkCoordinates(t *testing.T, svg []byte) {
	t.Helper()
	svg = embedded.ReplaceAll(svg, nil)
	for _, bad := range []string{"NaN", "Inf"} {
		if at := bytes.Index(svg, []byte(bad)); at >= 0 {
			t.Errorf("SVG has coordinates that are not finite: %s", svg[max(0, at-60):min(len(svg), at+20)])
		}
	}
}

func TestGallery(t *testing.T) {
	for _, s := range gallery() {
		t.Run(s.name, func(t *testing.T) {
			fig := computetest.Must(s.make())
			svg := computetest.Must(fig.SVG())
			texts, width, height := svgTexts(t, svg)
			all := strings.Join(texts, "\n")
			for _, want := range s.texts {
				if !strings.Contains(all, want) {
					t.Errorf("SVG has no text %q; it has:\n%s", want, all)
				}
			}
			checkCoordinates(t, svg)
			again := computetest.Must(s.make())
			if svg2, err := again.SVG(); err != nil || !bytes.Equal(svg, svg2) {
				t.Errorf("a second SVG of the same data differs (error %v)", err)
			}

			data := computetest.Must(fig.PNG())
			img := computetest.Must(png.Decode(bytes.NewReader(data)))
			// A point is 4/3 CSS pixels, and a PNG has 2 pixels for each.
			if b := img.Bounds(); math.Abs(float64(b.Dx())-width*8/3) > 1 || math.Abs(float64(b.Dy())-height*8/3) > 1 {
				t.Errorf("PNG has %d x %d pixels, SVG %v x %v points: want 8/3 pixels a point", b.Dx(), b.Dy(), width, height)
			}
			if len(data) > 700_000 || len(svg) > 1_000_000 {
				t.Errorf("PNG has %d bytes, SVG %d: want at most 700000 and 1000000", len(data), len(svg))
			}
			b := img.Bounds()
			for x := b.Min.X; x < b.Max.X; x++ {
				for y := b.Min.Y; y < b.Max.Y; y++ {
					if !image.Pt(x, y).In(b.Inset(2)) {
						if r, g, bl, _ := img.At(x, y).RGBA(); r != 0xFFFF || g != 0xFFFF || bl != 0xFFFF {
							t.Fatalf("pixel (%d, %d) at the edge is not white: something is clipped", x, y)
						}
					}
				}
			}
		})
	}
}

// A band that is a million times wider than the data, at their edge, leaves them to be seen, and says so.
func TestBandIsCut(t *testing.T) {
	for _, wide := range []float64{1, 1e6} {
		svg := svgOf(viz.PredictiveBand([]float64{0, 1, 2}, []float64{10, 11, 12}, []float64{1, 1, wide},
			viz.BandOptions{TrainX: []float64{0, 1, 2}, TrainY: []float64{10, 12, 11}}))
		if said := strings.Contains(svg, "cut where"); said != (wide > 1) || strings.Contains(svg, "e+06") ||
			strings.Contains(svg, "e6<") || strings.Contains(svg, "000000<") {
			t.Errorf("a standard deviation of %v: said to be cut: %v\n%s", wide, said, svg)
		}
	}
}

// TestLegendNumbers compares numbers in legends with those worked out by hand.
func TestLegendNumbers(t *testing.T) {
	validation := viz.Series{Step: []float64{10, 20, 30}, Value: []float64{3, 1.25, 2}}
	svg := svgOf(viz.TrainingCurves(viz.Series{}, validation, viz.Frame{}))
	if !strings.Contains(svg, "best: 1.25 at step 20") {
		t.Error("the least validation score is not the best")
	}
	// ESS of weights 3 and 1: (3 + 1)^2 / (9 + 1)
	svg = svgOf(viz.ParticleScatter([]float64{0, 1}, []float64{0, 1}, viz.ParticleOptions{Weights: []float64{3, 1}}))
	if !strings.Contains(svg, "2 particles, ESS 1.6<") {
		t.Error("ESS of weights 3 and 1 is not 1.6")
	}
}

func TestNonFinite(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	texts := func(fig *viz.Figure, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		svg := computetest.Must(fig.SVG())
		checkCoordinates(t, svg)
		all, _, _ := svgTexts(t, svg)
		return strings.Join(all, "\n")
	}
	x := []float64{0, 1, 2, 3}
	if s := texts(viz.PredictiveBand(x, []float64{0, nan, 1, 2}, []float64{1, 1, inf, 1},
		viz.BandOptions{TrainX: x, TrainY: []float64{1, 2, nan, 0}})); !strings.Contains(s, "3 non-finite values left out") {
		t.Errorf("band does not say that 3 values are left out:\n%s", s)
	}
	if s := texts(viz.ESSCurve(viz.Series{Value: []float64{5, inf, 3}}, viz.ESSOptions{})); !strings.Contains(s,
		"1 non-finite value left out") {
		t.Errorf("ESS does not say that 1 value is left out:\n%s", s)
	}
	lattice := computetest.Must(viz.NewLattice(0, 1, 4, 0, 1, 4))
	if s := texts(viz.DecisionMap(lattice.Fill(func(x, y float64) float64 { return x }), viz.DecisionOptions{
		PointsX: []float64{5, .5}, PointsY: []float64{1, 1}, Classes: []int{0, 1}})); !strings.Contains(s,
		"points outside the map: 1") {
		t.Errorf("map does not say that a point is outside:\n%s", s)
	}
	// A log-density of -Inf is a density of zero, not a missing value.
	walled := lattice.Fill(func(x, y float64) float64 { return -x * x })
	walled.Values[5] = -inf
	s := texts(viz.ParticleScatter(x[:2], x[:2], viz.ParticleOptions{LogDensity: walled}))
	if strings.Contains(s, "left out") {
		t.Errorf("a log-density of -Inf counts as left out:\n%s", s)
	}
}

// Dots in great number make small files: some of them are drawn, and the figure says so.
func TestManyDots(t *testing.T) {
	rng := source()
	const n = 15_000
	x, y := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i], y[i] = rng.Float64(), rng.Float64()
	}
	svg := svgOf(viz.PredictiveBand([]float64{0, 1}, []float64{0, 1}, []float64{.1, .1},
		viz.BandOptions{TrainX: x, TrainY: y}))
	if len(svg) > 1_000_000 || !strings.Contains(svg, "3000 of the 15000 points are drawn") {
		t.Errorf("an SVG of %d bytes, which does not say that not all dots are drawn", len(svg))
	}
}

// A band of 200 000 noisy points is drawn in pieces, between which there are no seams.
func TestMostPoints(t *testing.T) {
	const n = 200_000
	noise, x, sd := make([]float64, n), make([]float64, n), make([]float64, n)
	rng := source()
	for i := range n {
		x[i], noise[i], sd[i] = float64(i), rng.NormFloat64(), rng.Float64()
	}
	fig := computetest.Must(viz.PredictiveBand(x, noise, sd, viz.BandOptions{}))
	data := computetest.Must(fig.PNG())
	// Along the middle of the widest band no pixel is white.
	img := computetest.Must(png.Decode(bytes.NewReader(data)))
	middle, white := img.Bounds().Dy()/2, 0
	for px := img.Bounds().Dx() / 5; px < img.Bounds().Dx()*9/10; px++ {
		if r, g, b, _ := img.At(px, middle).RGBA(); r+g+b == 3*0xFFFF {
			white++
		}
	}
	if white > 0 {
		t.Errorf("%d white pixels in the middle of a band", white)
	}
}

func TestTraces(t *testing.T) {
	one := viz.Trace{Name: "OHSMC", Series: viz.Series{Value: []float64{.1, .5, math.NaN(), .9}}}
	fig,
		err := viz.Traces([]viz.Trace{one, {Name: "SMC", Series: viz.Series{Step: []float64{1, 9}, Value: []float64{0, 1}}}},
		viz.TraceOptions{Truth: 1, TruthName: "truth"})
	if err != nil {
		t.Fatal(err)
	}
	svg := computetest.Must(fig.SVG())
	for _, text := range []string{"OHSMC", "SMC", "truth", "Traces", "1 non-finite"} {
		if !strings.Contains(string(svg), text) {
			t.Errorf("the figure does not say %q", text)
		}
	}
	back := []viz.Trace{{Name: "outline", Series: viz.Series{Step: []float64{1, 2, 1, 1}, Value: []float64{0, 1, 2, 0}}}}
	if fig, err := viz.Traces(back, viz.TraceOptions{Outlines: true}); err != nil || fig == nil {
		t.Errorf("an outline: %v", err)
	}
	point := svgOf(viz.Traces([]viz.Trace{{Name: "one point", Series: viz.Series{Value: []float64{1}}}},
		viz.TraceOptions{}))
	if dot := "fill:#0072B2"; !strings.Contains(point, dot) {
		t.Errorf("a trace of one point is not drawn: there is no %s", dot)
	}
	text := svgOf(viz.Traces([]viz.Trace{{Name: "band", Series: viz.Series{Value: []float64{1, 2}},
		Lower: []float64{0, -40}, Upper: []float64{3, 4}}}, viz.TraceOptions{}))
	if !strings.Contains(text, "fill-opacity:0.16") || !strings.Contains(text, "−40") {
		t.Errorf("a band is not drawn, or the axis does not hold it:\n%s", text)
	}
	var all []viz.Trace // without curves: nested bands, opaque, and points
	for i, name := range []string{"wide", "narrow", "points"} {
		t := viz.Trace{Name: name, Series: viz.Series{Value: []float64{1, 2}}, NoLine: true}
		if half := float64(2 - i); half > 0 {
			t.Lower, t.Upper = []float64{1 - half, 2 - half}, []float64{1 + half, 2 + half}
		}
		all = append(all, t)
	}
	nested := svgOf(viz.Traces(all, viz.TraceOptions{XNames: []string{"oak", "fir"}}))
	for look, want := range map[string]int{"fill:#DDF0FB": 2, "fill:#B8E0F6": 2, "fill-opacity": 0, ">oak<": 1, ">fir<": 1,
		"stroke-width:1.8": 0} {
		if n := strings.Count(nested, look); n != want {
			t.Errorf("without curves %q stands there %d times, want %d:\n%s", look, n, want, nested)
		}
	}
	for _, values := range [][]float64{{1e-300, 1e99}, {5e-324, 1}, {5e-324, 5e-324}} { // the ratio is no number
		checkCoordinates(t, []byte(svgOf(viz.Traces([]viz.Trace{{Name: "a", Series: viz.Series{Value: values}}},
			viz.TraceOptions{LogY: true}))))
	}
}

// A logarithmic axis has the least and the largest of bars and marks on it, with room for the numbers; a number of a
// dark cell is white.
func TestLogBars(t *testing.T) {
	bars := svgOf(viz.Bars([]string{"oak", "fir", "elm"}, []float64{.3, 2, math.NaN()},
		viz.BarOptions{Log: true, Marks: []float64{math.NaN(), 96, math.NaN()}, MarkName: "published"}))
	for _, text := range []string{">0.3<", ">2<", ">not finite<", ">1<", ">10<", ">100<"} {
		if !strings.Contains(bars, text) || strings.Contains(bars, "→") {
			t.Errorf("the bars do not say %s, or one is cut:\n%s", text, bars)
		}
	}
	if same := svgOf(viz.Bars([]string{"oak"}, []float64{3}, viz.BarOptions{Log: true})); !strings.Contains(same, ">3<") {
		t.Errorf("one bar:\n%s", same)
	}
	cells := svgOf(viz.Confusion([][]float64{{9, 1}, {5, 6}}, nil, viz.Frame{}))
	if n := strings.Count(cells, "fill:#FFFFFF"); n != 2 { // the ground, and 9
		t.Errorf("%d fills are white, want 2:\n%s", n, cells)
	}
}

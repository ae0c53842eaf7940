package viz

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
)

// TestContour compares the level lines of x^2 + y^2 with the circle.
func TestContour(t *testing.T) {
	f := computetest.Must(NewLattice(-2, 2, 81, -2, 2, 81))
	f = f.Fill(func(x, y float64) float64 { return x*x + y*y })
	length, radius := 0., math.Sqrt(1.5)
	for _, l := range f.contour(1.5) {
		for i := range l.xs {
			// Linear interpolation on edges of length h is off by at most h^2 / (8 r) along the edge, and r > 1; the longest
			// edge is a diagonal of h = 0.05 sqrt(2).
			if r := math.Hypot(l.xs[i], l.ys[i]); math.Abs(r-radius) > 0.05*0.05/4 {
				t.Fatalf("a point is at radius %v: want %v", r, radius)
			}
		}
		length += math.Hypot(l.xs[1]-l.xs[0], l.ys[1]-l.ys[0])
	}
	if want := 2 * math.Pi * radius; math.Abs(length-want) > 0.01*want {
		t.Errorf("length %v: want %v", length, want)
	}

	// A saddle: x*y = 0.3 has two branches; none crosses the axes.
	saddle := f.Fill(func(x, y float64) float64 { return (x + 0.01) * (y + 0.013) })
	pieces := saddle.contour(0.3)
	for _, l := range pieces {
		for i := range l.xs {
			if l.xs[i]*l.ys[i] < 0.2 {
				t.Fatalf("hyperbola passes (%v, %v)", l.xs[i], l.ys[i])
			}
		}
	}
	if len(pieces) < 100 {
		t.Errorf("a hyperbola of %d pieces", len(pieces))
	}
}

// TestMassHeight compares with the standard Gaussian in the plane, where the region of mass m ends at density 1 - m of
// the peak.
func TestMassHeight(t *testing.T) {
	f := computetest.Must(NewLattice(-6, 6, 241, -6, 6, 241))
	f = f.Fill(func(x, y float64) float64 { return math.Exp(-(x*x + y*y) / 2) })
	for _, mass := range []float64{0.5, 0.9, 0.99} {
		if h, want := f.massHeight(mass), 1-mass; math.Abs(h-want) > 0.005 {
			t.Errorf("mass %v ends at height %v: want %v", mass, h, want)
		}
	}
}

// Ticks stand at round numbers within the axis, and those of a logarithmic one at powers of ten and what fits between
// them. An axis of whole numbers has none between two of them.
func TestTicks(t *testing.T) {
	whole, log := axis{whole: true}, axis{log: true}
	for _, c := range []struct {
		kind   axis
		lo, hi float64
		most   float64
		want   string
	}{
		{axis{}, 0, 10, 5, "0 2 4 6 8 10"},
		{axis{}, -1.1, 1.2, 5, "-1 -0.5 0 0.5 1"},
		{axis{}, -4, 4, 2, "-4 -2 0 2 4"}, // fewer would be 0 alone
		{axis{}, 0, 1, 4, "0 0.25 0.5 0.75 1"},
		{axis{}, 0, .6, 6, "0 0.1 0.2 0.3 0.4 0.5 0.6"},
		{axis{}, 3, 97, 5, "20 40 60 80"},
		{axis{}, 0, 3e6, 3, "0 1e6 2e6 3e6"},
		{axis{}, 0, 2e-5, 4, "0 5e-6 1e-5 1.5e-5 2e-5"},
		{axis{}, 1.7e9 - .02, 1.7e9 + .02, 4, "1.69999999998e9 1.69999999999e9 1.7e9 1.70000000001e9 1.70000000002e9"},
		{whole, .7, 20.3, 8, "3 6 9 12 15 18"},
		{whole, .9, 3.1, 8, "1 2 3"},
		{whole, .5, 1.5, 8, "1"},
		{whole, -.2, 1.2, 5, "0 1"},
		{whole, 0, 1000, 4, "0 250 500 750 1000"},
		{log, .8, 120, 9, "1 2 5 10 20 50 100"},
		{log, .8, 120, 8, "1 10 100"},
		{log, 1e-4, 1e4, 6, "0.0001 0.01 1 100 10000"},
		{log, 1, 3, 4, "1 1.5 2 2.5 3"},
		{log, .14, 9, 8, "0.2 0.5 1 2 5"},
	} {
		c.kind.span = span{c.lo, c.hi}
		got, last := "", math.Inf(-1)
		for _, tick := range c.kind.ticks(vg.Length(10*c.most), 10) {
			if tick.value < c.lo || tick.value > c.hi || tick.value <= last {
				t.Errorf("tick %v after %v, within [%v, %v]", tick.value, last, c.lo, c.hi)
			}
			last = tick.value
			got += " " + strings.ReplaceAll(tick.label, "−", "-")
		}
		if got != " "+c.want {
			t.Errorf("%v ticks of %v to %v:%s, want %s", c.most, c.lo, c.hi, got, c.want)
		}
	}
}

func TestRunningMean(t *testing.T) {
	if got := runningMean([]float64{3, 0, 6, 9, 0}, 3); fmt.Sprint(got) != "[1.5 3 5 5 4.5]" {
		t.Errorf("running mean of 3: %v, want [1.5 3 5 5 4.5]", got)
	}
}

func TestRobustSpan(t *testing.T) {
	var curve []float64
	for i := range 100 {
		curve = append(curve, 1+0.01*float64(i%10))
	}
	if s, cut := robustSpan(curve); cut != 0 || s.hi != 1.09 {
		t.Errorf("tame curve: axis to %v, %d cut: want 1.09 and none", s.hi, cut)
	}
	curve[0], curve[1] = 1000, 500
	if s, cut := robustSpan(curve); cut != 2 || s.hi > 1.2 || s.hi < 1.09 {
		t.Errorf("curve with two outliers: axis to %v, %d cut: want about 1.1 and 2", s.hi, cut)
	}
}

// Of many particles the heaviest are drawn, of equal ones some from all of them.
func TestHeaviestParticles(t *testing.T) {
	const n = 4 * mostDots
	rows := [][]float64{make([]float64, n), make([]float64, n), slices.Repeat([]float64{.1}, n)}
	for i := range n {
		rows[0][i] = float64(i)
	}
	rows[2][7] = 1
	d := particleDots(rows)
	if len(d.xs) != mostDots || d.xs[0] != 7 || slices.Max(d.radii) != d.radii[0] {
		t.Errorf("%d of %d particles are drawn, the first is %v", len(d.xs), n, d.xs[0])
	}
	if slices.Min(d.xs) > 4 || slices.Max(d.xs) < n-9 {
		t.Errorf("the particles from %v to %v of %d are drawn", slices.Min(d.xs), slices.Max(d.xs), n)
	}
}

// TestColours wants the maps' order to survive without hue: lightness grows from both ends to the middle, or falls
// throughout.
func TestColours(t *testing.T) {
	lightness := func(table *colourTable, i int) float64 {
		r, g, b, _ := table[i].RGBA()
		return 0.2126*float64(r) + 0.7152*float64(g) + 0.0722*float64(b)
	}
	diverging, sequential := divergingColours, sequentialColours
	middle := len(diverging) / 2
	for i := 1; i < len(diverging); i++ {
		if up := lightness(diverging, i) > lightness(diverging, i-1); up != (i <= middle) {
			t.Errorf("diverging map at %d: lightness rises: %v", i, up)
		}
		if lightness(sequential, i) > lightness(sequential, i-1) {
			t.Errorf("sequential map at %d: lightness rises", i)
		}
	}
	ends := math.Abs(lightness(diverging, 0)-lightness(diverging, len(diverging)-1)) / 0xFFFF
	if ends > 0.15 {
		t.Errorf("the diverging map's ends differ by %v in lightness: they should be equally heavy", ends)
	}
}

// Names that are too long stay different where only their ends are, as those of weights are.
func TestCut(t *testing.T) {
	sty := textStyle(tickSize, black)
	for _, c := range []struct{ name, begins, ends string }{
		{"layer2/weights[0, 1]", "la", "1]"}, {"log of an acceptance ratio [nats]", "log", "ts]"}, {"short", "short", ""},
	} {
		got := cut(sty, c.name, 60)
		if !strings.HasPrefix(got, c.begins) || !strings.HasSuffix(got, c.ends) || sty.Width(got) > 60 ||
			(got == c.name) == strings.Contains(got, ellipsis) {
			t.Errorf("%q is cut to %q", c.name, got)
		}
	}
	if got := cut(sty, "layer2", 1); got != ellipsis {
		t.Errorf("where nothing fits %q is left", got)
	}
}

// written is a text on a canvas, with the corners of its box.
type written struct {
	text   string
	size   vg.Length
	lo, hi vg.Point
}

// texts are those of a figure. They stand upright or are turned by a quarter to the left.
func texts(f *Figure) (all []written) {
	canvas := new(recorder.Canvas)
	f.render(canvas)
	type place struct {
		at     vg.Point
		turned bool
	}
	stack := []place{{}}
	for _, action := range canvas.Actions {
		last := &stack[len(stack)-1]
		on := func(p vg.Point) vg.Point {
			if last.turned {
				p = vg.Point{X: -p.Y, Y: p.X}
			}
			return last.at.Add(p)
		}
		switch a := action.(type) {
		case *recorder.Push:
			stack = append(stack, *last)
		case *recorder.Pop:
			stack = stack[:len(stack)-1]
		case *recorder.Translate:
			last.at = on(a.Point)
		case *recorder.Rotate:
			last.turned = a.Angle > 1
		case *recorder.FillString:
			style := textStyle(a.Size, black)
			corners := []vg.Point{on(a.Point), on(a.Point.Add(vg.Point{X: style.Width(a.String), Y: .7 * a.Size}))}
			all = append(all, written{a.String, a.Size,
				vg.Point{X: min(corners[0].X, corners[1].X), Y: min(corners[0].Y, corners[1].Y)},
				vg.Point{X: max(corners[0].X, corners[1].X), Y: max(corners[0].Y, corners[1].Y)}})
		}
	}
	return all
}

// TextFaults names the texts of a figure that stand on each other or out of it, or are smaller than 9 CSS pixels.
func TextFaults(f *Figure) (faults []string) {
	all := texts(f)
	w, h := f.size()
	for i, a := range all {
		if a.lo.X < 0 || a.lo.Y < 0 || a.hi.X > w || a.hi.Y > h || a.size < 6.75 {
			faults = append(faults, fmt.Sprintf("%q of %v points stands at %v to %v in %v x %v", a.text, a.size, a.lo,
				a.hi, w, h))
		}
		for _, b := range all[:i] {
			const touch = .01
			if a.lo.X < b.hi.X-touch && b.lo.X < a.hi.X-touch && a.lo.Y < b.hi.Y-touch && b.lo.Y < a.hi.Y-touch {
				faults = append(faults, fmt.Sprintf("%q and %q stand on each other at %v", a.text, b.text, a.lo))
			}
		}
	}
	return faults
}

// tracesOf is a figure of a trace of values.
func tracesOf(t *testing.T, opt TraceOptions, values ...float64) *Figure {
	t.Helper()
	f := computetest.Must(Traces([]Trace{{Name: "a", Series: Series{Value: values}}}, opt))
	return f
}

// The data areas of a grid have one size and are in line, also where only the outer panels have numbers. Ticks are the
// same where panels share an axis.
func TestGridIsInLine(t *testing.T) {
	for height := 240; height < 420; height += 20 {
		var figures []*Figure
		for range 6 {
			figures = append(figures, tracesOf(t, TraceOptions{Frame: Frame{Width: 415, Height: height}}, -10, 3, 10))
		}
		for _, shared := range []bool{true, false} {
			fig := computetest.Must(Grid(GridOptions{Columns: 2, SharedX: shared, SharedY: shared}, figures...))
			canvas := new(recorder.Canvas)
			fig.render(canvas)
			lefts, lows, sizes := map[string]int{}, map[string]int{}, map[string]int{}
			for _, action := range canvas.Actions {
				if a, ok := action.(*recorder.Stroke); ok && len(a.Path) == 5 { // a frame of axes, from its lower left corner
					corner, right, top := a.Path[0].Pos, a.Path[1].Pos, a.Path[2].Pos
					lefts[fmt.Sprintf("%.3f", corner.X)]++
					lows[fmt.Sprintf("%.3f", corner.Y)]++
					sizes[fmt.Sprintf("%.3f x %.3f", right.X-corner.X, top.Y-corner.Y)]++
				}
			}
			if len(lefts) != 2 || len(lows) != 3 || len(sizes) != 1 {
				t.Errorf("%d pixels, shared %v: axes at %v and %v, of %v", height, shared, lefts, lows, sizes)
			}
			numbers := map[string]int{}
			for _, w := range texts(fig) {
				if strings.Trim(w.text, "−0123456789.") == "" {
					numbers[w.text]++
				}
			}
			for text, n := range numbers { // in three rows and two columns
				if shared && n != 2 && n != 3 && n != 5 {
					t.Errorf("%d pixels: %q stands there %d times", height, text, n)
				}
			}
		}
	}
}

// A grid has one colour bar where those of its figures are of the same quantity.
func TestGridSharesBar(t *testing.T) {
	lattice := computetest.Must(NewLattice(0, 1, 3, 0, 1, 3))
	for _, other := range []string{"", "fit"} { // what the second figure shows
		var figures []*Figure
		for _, label := range []string{"", other} {
			field := lattice.Fill(func(x, y float64) float64 { return x * y })
			figures = append(figures, computetest.Must(DecisionMap(field, DecisionOptions{ProbabilityLabel: label})))
		}
		g := computetest.Must(Grid(GridOptions{Columns: 2}, figures...)).body.(*grid)
		for _, cell := range g.cells {
			if own := cell.(*panel).bar != ""; own != (other != "") || own == (g.bar != "") {
				t.Errorf("a second figure of %q: a bar for all %q, and for one figure %v", other, g.bar, own)
			}
		}
	}
}

// Of figures with one range of y, the one that would squeeze the others is cut to their range; not two of them, and
// none of two figures.
func TestSharedYCuts(t *testing.T) {
	for _, c := range []struct {
		tops []float64 // of figures from 0
		want float64   // the end of all, about
		cut  int       // the figure that says so; -1: none
	}{
		{[]float64{3, 2, 30, 3}, 3, 2}, {[]float64{3, 2, 5, 3}, 5, -1}, {[]float64{3, 30, 30}, 30, -1},
		{[]float64{3, 30}, 30, -1},
	} {
		var figures []*Figure
		for _, top := range c.tops {
			figures = append(figures, tracesOf(t, TraceOptions{}, 0, top))
		}
		fig := computetest.Must(Grid(GridOptions{Columns: 2, SharedY: true}, figures...))
		for i, cell := range fig.body.(*grid).cells {
			p := cell.(*panel)
			if top := p.axes[0].y.hi; top < c.want || top > 1.2*c.want {
				t.Errorf("%v: figure %d ends at %v, want about %v", c.tops, i, top, c.want)
			}
			if said := strings.Contains(strings.Join(p.notes, ""), "cut off: alone its axis is from "); said != (i == c.cut) {
				t.Errorf("%v: figure %d says %q", c.tops, i, p.notes)
			}
			if notes := figures[i].body.(*panel).notes; len(notes) > 0 {
				t.Errorf("%v: a figure outside of the grid says %q", c.tops, notes)
			}
		}
	}
}

// A band is as many standard deviations wide as the legend says, about the mean, in order of x.
func TestBand(t *testing.T) {
	fig := computetest.Must(PredictiveBand([]float64{2, 0, 1}, []float64{12, 10, 11}, []float64{.5, 1, 2}, BandOptions{}))
	legend := fig.body.(*panel).legend
	if mean := legend[0].marks[0].(*line).pieces[0]; fmt.Sprint(mean) != "{[0 1 2] [10 11 12]}" {
		t.Errorf("the mean is %v", mean)
	}
	for k, want := range []string{"{[0 1 2] [9 9 11.5] [11 13 12.5] ", "{[0 1 2] [8 7 11] [12 15 13] ",
		"{[0 1 2] [7 5 10.5] [13 17 13.5] "} {
		e := legend[k+1]
		if got := fmt.Sprint(*e.marks[0].(*area)); !strings.HasPrefix(got, want) || e.label != fmt.Sprintf("±%d sd", k+1) {
			t.Errorf("%s is %v, want %v", e.label, got, want)
		}
	}
}

// A line of 10^5 points is thinned, and still shows the extremes.
func TestLongSeries(t *testing.T) {
	const n = 100_000
	xs, ys := make([]float64, n), make([]float64, n)
	for i := range xs {
		xs[i], ys[i] = float64(i), math.Sin(float64(i))
	}
	ys[54_321] = 5 // one spike: thinning must keep it
	p := plane{draw.Canvas{Rectangle: vg.Rectangle{Max: vg.Point{X: 600, Y: 300}}}, axis{span: span{0, n}},
		axis{span: span{-1, 5}}}
	points, spikes := polyline{xs, ys}.thinned(p), 0
	for i, at := range points {
		if i > 0 && at.X <= points[i-1].X {
			t.Errorf("the line goes back from %v to %v", points[i-1].X, at.X)
		}
		if at.Y > 200 {
			spikes++
		}
	}
	if len(points) > 3*mostGroups || spikes != 1 || points[0].X > 2 || points[len(points)-1].X < 598 {
		t.Errorf("%d points, and %d of them of the spike", len(points), spikes)
	}
}

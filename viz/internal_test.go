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
	lines := f.contour(1.5)
	if len(lines) != 1 {
		t.Fatalf("%d lines: want one closed", len(lines))
	}
	l := lines[0]
	if n := len(l.xs) - 1; l.xs[0] != l.xs[n] || l.ys[0] != l.ys[n] {
		t.Error("the circle is not closed")
	}
	for i := range l.xs {
		// Linear interpolation on edges of length h = 0.05 is off by at most h^2 / (8 r) along the edge, and r > 1.
		if r := math.Hypot(l.xs[i], l.ys[i]); math.Abs(r-math.Sqrt(1.5)) > 0.05*0.05/4 {
			t.Fatalf("point %d is at radius %v: want %v", i, r, math.Sqrt(1.5))
		}
	}
	var length float64
	for i := 1; i < len(l.xs); i++ {
		length += math.Hypot(l.xs[i]-l.xs[i-1], l.ys[i]-l.ys[i-1])
	}
	if want := 2 * math.Pi * math.Sqrt(1.5); math.Abs(length-want) > 0.01*want {
		t.Errorf("length %v: want %v", length, want)
	}

	// A saddle: x*y = 0.01 has two branches, cut at the lattice's edge; none crosses the axes.
	saddle := f.Fill(func(x, y float64) float64 { return (x + 0.01) * (y + 0.013) })
	lines = saddle.contour(0.3)
	if len(lines) != 2 {
		t.Fatalf("hyperbola has %d lines: want 2", len(lines))
	}
	for _, l := range lines {
		for i := range l.xs {
			if l.xs[i]*l.ys[i] < 0.2 {
				t.Fatalf("hyperbola passes (%v, %v)", l.xs[i], l.ys[i])
			}
		}
	}
}

// TestMassHeights compares with the standard Gaussian in the plane, where the region of mass m ends at density 1 - m of
// the peak.
func TestMassHeights(t *testing.T) {
	f := computetest.Must(NewLattice(-6, 6, 241, -6, 6, 241))
	f = f.Fill(func(x, y float64) float64 { return math.Exp(-(x*x + y*y) / 2) })
	masses := []float64{0.5, 0.9, 0.99}
	for k, h := range f.massHeights(masses) {
		if want := 1 - masses[k]; math.Abs(h-want) > 0.005 {
			t.Errorf("mass %v ends at height %v: want %v", masses[k], h, want)
		}
	}
}

// Ticks stand at round numbers within the axis, and those of a logarithmic one at powers of ten and what fits between
// them. An axis of whole numbers has none between two of them, and a low strip one number.
func TestTicks(t *testing.T) {
	whole, log := axis{whole: true}, axis{log: true}
	for _, c := range []struct {
		kind   axis
		lo, hi float64
		length vg.Length
		most   int
		want   string
	}{
		{axis{}, 0, 10, 400, 5, "0 2 4 6 8 10"},
		{axis{}, -1.1, 1.2, 400, 5, "-1.0 -0.5 0 0.5 1.0"},
		{axis{}, -4, 4, 400, 2, "-4 -2 0 2 4"}, // fewer would be 0 alone
		{axis{}, 0, 1, 400, 4, "0 0.25 0.50 0.75 1.00"},
		{axis{}, 3, 97, 400, 5, "20 40 60 80"},
		{axis{}, 0, 3e6, 400, 3, "0 1e6 2e6 3e6"},
		{axis{}, 0, 2e-5, 400, 4, "0 5e-6 1e-5 1.5e-5 2e-5"},
		{axis{}, 1.7e9 - .02, 1.7e9 + .02, 400, 8, "1.69999999998e9 1.69999999999e9 1.7e9 1.70000000001e9 1.70000000002e9"},
		{axis{}, 1.7e9 - .02, 1.7e9 + .02, 300, 8, "1.69999999998e9 1.7e9 1.70000000002e9"}, // long numbers have room
		{axis{}, 0, 6000, 12, 4, "5000"},
		{whole, .7, 20.3, 400, 8, "5 10 15 20"},
		{whole, .9, 3.1, 400, 8, "1 2 3"},
		{whole, .5, 1.5, 400, 8, "1"},
		{whole, -.2, 1.2, 400, 5, "0 1"},
		{whole, 0, 1000, 400, 4, "0 250 500 750 1000"},
		{log, .8, 120, 200, 8, "1 2 5 10 20 50 100"},
		{log, .8, 120, 70, 8, "1 3 10 30 100"},
		{log, .8, 120, 40, 8, "1 10 100"},
		{log, 1e-4, 1e4, 100, 8, "1e-4 0.01 1 100 10000"},
		{log, 1e-4, 1e4, 5, 8, "1e-4"},
		{log, 1, 3, 250, 4, "1.0 1.5 2.0 2.5 3.0"},
		{log, .14, 9, 190, 8, "0.2 0.5 1 2 5"},
		{log, 1.5, 9.5, 250, 8, "2 3 4 5 6 7 8 9"},
		{log, 1.5, 9.5, 80, 8, "2 3 5 7"},
	} {
		c.kind.span = span{c.lo, c.hi}
		got, last := "", math.Inf(-1)
		extent := func(label string) vg.Length {
			if c.kind.log { // upwards
				return tickSize
			}
			return 6 * vg.Length(len(label))
		}
		for _, tick := range c.kind.ticks(c.length, c.most, extent) {
			if tick.value < c.lo || tick.value > c.hi || tick.value <= last {
				t.Errorf("tick %v after %v, within [%v, %v]", tick.value, last, c.lo, c.hi)
			}
			if last = tick.value; tick.label != "" {
				got += " " + strings.ReplaceAll(tick.label, "−", "-")
			}
		}
		if got != " "+c.want {
			t.Errorf("ticks of %v to %v along %v:%s, want %s", c.lo, c.hi, c.length, got, c.want)
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

// TestMergeParticles wants weight and centre of mass unchanged.
func TestMergeParticles(t *testing.T) {
	var rows [3][]float64
	var mass, cx, cy float64
	for i := range 5000 {
		x, y, w := math.Sin(float64(i)), math.Cos(1.7*float64(i)), float64(i%7)/6
		rows[0], rows[1], rows[2] = append(rows[0], x), append(rows[1], y), append(rows[2], w)
		mass, cx, cy = mass+w, cx+w*x, cy+w*y
	}
	xs, ys, weights := mergeParticles(rows[:], span{-1, 1}, span{-1, 1})
	if len(xs) >= 5000 {
		t.Fatal("nothing is merged")
	}
	var m, mx, my float64
	for i, w := range weights {
		m, mx, my = m+w, mx+w*xs[i], my+w*ys[i]
	}
	if math.Abs(m-mass) > 1e-6*mass || math.Abs(mx-cx) > 1e-6*mass || math.Abs(my-cy) > 1e-6*mass {
		t.Errorf("mass %v, moments (%v, %v): want %v, (%v, %v)", m, mx, my, mass, cx, cy)
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
		if lightness(sequential, i) >= lightness(sequential, i-1) {
			t.Errorf("sequential map at %d: lightness does not fall", i)
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
				if a, ok := action.(*recorder.Stroke); ok && len(a.Path) == 3 && a.Path[0].Pos.X == a.Path[1].Pos.X { // axes
					top, corner, right := a.Path[0].Pos, a.Path[1].Pos, a.Path[2].Pos
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

// Axes above each other share out the height of their data: the counts below a small reliability diagram, whose numbers
// and label take as much as they, would be a line.
func TestAxesShareData(t *testing.T) {
	p := &panel{axes: []*axes{newAxes("", "accuracy", span{0, 1}, span{0, 1}),
		newAxes("confidence", "rows", span{0, 1}, span{0, 900})}}
	p.axes[0].share = 3
	for _, height := range []vg.Length{150, 200, 300} {
		canvas, size := new(recorder.Canvas), vg.Point{X: 200, Y: height}
		p.draw(draw.Canvas{Canvas: canvas, Rectangle: vg.Rectangle{Max: size}}, inset{margins: p.margins(size), size: size})
		var data []vg.Length
		for _, action := range canvas.Actions {
			if a, ok := action.(*recorder.Stroke); ok && len(a.Path) == 3 {
				data = append(data, a.Path[0].Pos.Y-a.Path[1].Pos.Y)
			}
		}
		if len(data) != 2 || math.Abs(float64(data[0]/data[1])-3) > .01 {
			t.Errorf("%v points high: data of %v, want 3 to 1", height, data)
		}
	}
}

// A grid has one colour bar where those of its figures are the same, also in their range and level lines.
func TestGridSharesBar(t *testing.T) {
	lattice := computetest.Must(NewLattice(0, 1, 3, 0, 1, 3))
	for _, other := range []bool{false, true} { // levels of the second figure
		var figures []*Figure
		for _, alone := range []bool{false, other} {
			field := lattice.Fill(func(x, y float64) float64 { return x * y })
			f := computetest.Must(DecisionMap(field, DecisionOptions{Boundary: alone}))
			figures = append(figures, f)
		}
		fig := computetest.Must(Grid(GridOptions{Columns: 2}, figures...))
		g := fig.body.(*grid)
		for _, cell := range g.cells {
			if own := cell.(*panel).bar != nil; own != other || own == (g.bar != nil) {
				t.Errorf("other levels %v: a bar for all %v, and for one figure %v", other, g.bar != nil, own)
			}
		}
	}
}

// Two noisy curves of many steps are faint below their running means, which tell them apart; of few steps they are not.
func TestESSOfManySteps(t *testing.T) {
	values := func(n int, level float64) (out []float64) {
		for i := range n {
			out = append(out, level+300*float64(i%2))
		}
		return out
	}
	for _, c := range []struct {
		steps int
		note  string
		reach float64 // of the thick blue line, from its lowest to its highest point, in particles
	}{{200, "", 300}, {1000, "faint: each step; thick: running means of 20", 10}} {
		fig := computetest.Must(ESSCurve(Series{Value: values(c.steps, 100)},
			ESSOptions{UniqueAncestors: values(c.steps, 500), Particles: 1000}))
		p := fig.body.(*panel)
		if got := strings.Join(p.notes, "; "); got != c.note {
			t.Errorf("%d steps: the figure says %q, want %q", c.steps, got, c.note)
		}
		for _, e := range p.legend[:2] {
			ys := e.marks[0].(*line).pieces[0].ys
			middle := ys[len(ys)/4 : 3*len(ys)/4]
			if reach := slices.Max(middle) - slices.Min(middle); math.Abs(reach-c.reach) > 10 {
				t.Errorf("%d steps: the line of %s reaches over %v particles, want %v", c.steps, e.label, reach, c.reach)
			}
		}
	}
}

// What is above Most is cut by the axes' end, and each peak has an arrow there, within the axes: a peak that was
// lowered to the end looked like a plateau.
func TestPeaksAreCut(t *testing.T) {
	values := []float64{1, 9, 8, 1, 2, 1, 5, 1, 1, 1} // two peaks above 3: at 2 and 3, and at 7
	for _, log := range []bool{false, true} {
		p := tracesOf(t, TraceOptions{Most: 3, LogY: log}, values...).body.(*panel)
		if got, want := strings.Join(p.notes, ""), "arrows: values above the axis, up to 9"; got != want {
			t.Errorf("the figure says %q, want %q", got, want)
		}
		if top := p.axes[0].y.hi; top < 3 || top > 3.3 {
			t.Errorf("the axis ends at %v", top)
		}
		canvas := new(recorder.Canvas)
		data := draw.Canvas{Canvas: canvas, Rectangle: vg.Rectangle{Max: vg.Point{X: 300, Y: 200}}}
		var tips []float64
		for _, m := range p.axes[0].marks {
			m.draw(plane{data, p.axes[0].x, p.axes[0].y})
		}
		for _, action := range canvas.Actions {
			switch a := action.(type) {
			case *recorder.Fill:
				if len(a.Path) == 4 && a.Path[0].Pos.Y == data.Max.Y {
					tips = append(tips, 1+9*float64((a.Path[0].Pos.X-data.Min.X)/data.Size().X))
				}
			case *recorder.Stroke: // along the upper edge
				for i := 1; i < len(a.Path); i++ {
					if from, to := a.Path[i-1].Pos, a.Path[i].Pos; from.Y == to.Y && from.Y > data.Max.Y-1 && from.X != to.X {
						t.Errorf("a plateau from %v to %v", from, to)
					}
				}
			}
		}
		if len(tips) != 2 || math.Abs(tips[0]-2.5) > .1 || math.Abs(tips[1]-7) > .1 {
			t.Errorf("logarithmic %v: arrows at %v, want them at 2.5 and 7", log, tips)
		}
	}
	if p := tracesOf(t, TraceOptions{Most: 10}, values...).body.(*panel); p.axes[0].y.hi > 9.5 || len(p.notes) > 0 {
		t.Errorf("nothing is cut: the axis ends at %v, and the figure says %q", p.axes[0].y.hi, p.notes)
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

// A line of 10^5 points is thinned, and still shows the extremes, in pieces that join.
func TestLongSeries(t *testing.T) {
	const n = 100_000
	xs, ys := make([]float64, n), make([]float64, n)
	for i := range xs {
		xs[i], ys[i] = float64(i), math.Sin(float64(i))
	}
	ys[54_321] = 5 // one spike: thinning must keep it
	p := plane{draw.Canvas{Rectangle: vg.Rectangle{Max: vg.Point{X: 600, Y: 300}}}, axis{span: span{0, n}},
		axis{span: span{-1, 5}}}
	points, spikes, end := 0, 0, vg.Length(0)
	for _, piece := range pieces(p, xs, ys) {
		if piece[0].X > end {
			t.Errorf("a piece begins at %v, the one before ends at %v", piece[0].X, end)
		}
		points, end = points+len(piece), piece[len(piece)-1].X
		for _, at := range piece {
			if at.Y > 200 {
				spikes++
			}
		}
	}
	if points > 4*thinColumns*11/10 || spikes != 1 || end < 599 {
		t.Errorf("%d points up to %v, and %d of them of the spike", points, end, spikes)
	}
}

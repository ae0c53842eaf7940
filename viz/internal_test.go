package viz

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gobnn/bayes/metric"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
	"gonum.org/v1/plot/vg/vgimg"
)

// TestContour compares the level lines of x^2 + y^2 with the circle.
func TestContour(t *testing.T) {
	f, err := NewLattice(-2, 2, 81, -2, 2, 81)
	if err != nil {
		t.Fatal(err)
	}
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
	f, err := NewLattice(-6, 6, 241, -6, 6, 241)
	if err != nil {
		t.Fatal(err)
	}
	f = f.Fill(func(x, y float64) float64 { return math.Exp(-(x*x + y*y) / 2) })
	masses := []float64{0.5, 0.9, 0.99}
	for k, h := range f.massHeights(masses) {
		if want := 1 - masses[k]; math.Abs(h-want) > 0.005 {
			t.Errorf("mass %v ends at height %v: want %v", masses[k], h, want)
		}
	}
}

// A range that is small beside its place is an axis, as of times in seconds.
func TestFarFromZero(t *testing.T) {
	if s := spanOf([]float64{1.7e9 - .04, 1.7e9, 1.7e9 + .05}); s.lo != 1.7e9-.04 || s.hi != 1.7e9+.05 {
		t.Errorf("the axis is from %v to %v", s.lo, s.hi)
	}
}

func TestNiceTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		count  int
		want   string
	}{
		{0, 10, 5, "0 2 4 6 8 10"},
		{-1.1, 1.2, 5, "−1.0 −0.5 0 0.5 1.0"},
		{-4, 4, 2, "−4 −2 0 2 4"}, // fewer would be 0 alone
		{0, 1, 4, "0 0.25 0.50 0.75 1.00"},
		{3, 97, 5, "20 40 60 80"},
		{0, 3e6, 3, "0 1e6 2e6 3e6"},
		{0, 2e-5, 4, "0 5e-6 1e-5 1.5e-5 2e-5"},
		{1e15, 1e15 + 0.2, 4, "1e15"},
	} {
		got := ""
		for _, tick := range (niceTicks{c.count}).Ticks(c.lo, c.hi) {
			if tick.Value < c.lo || tick.Value > c.hi {
				t.Errorf("tick %v is outside [%v, %v]", tick.Value, c.lo, c.hi)
			}
			if got != "" {
				got += " "
			}
			got += tick.Label
		}
		if want := replaceMinus(c.want); replaceMinus(got) != want {
			t.Errorf("ticks of [%v, %v]: %s, want %s", c.lo, c.hi, got, want)
		}
	}
}

// An axis of whole numbers has no tick between two of them, as at iteration 2.5.
func TestWholeTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		count  int
		want   string
	}{
		{.7, 20.3, 8, "5 10 15 20"},
		{.9, 3.1, 8, "1 2 3"},
		{.5, 1.5, 8, "1"},
		{-.2, 1.2, 5, "0 1"},
		{0, 1000, 4, "0 250 500 750 1000"},
	} {
		got := ""
		for _, tick := range (wholeTicks{c.count}).Ticks(c.lo, c.hi) {
			got = strings.TrimPrefix(got+" "+tick.Label, " ")
		}
		if got != c.want {
			t.Errorf("ticks of [%v, %v]: %s, want %s", c.lo, c.hi, got, c.want)
		}
	}
	for _, c := range []struct {
		last float64
		want bool
	}{{20, true}, {19.5, false}} {
		f, err := Traces([]Trace{{Name: "a", Series: Series{Step: []float64{1, 10, c.last}, Value: []float64{1, 2, 3}}}},
			TraceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, got := f.body.(*panel).axes[0].plot.X.Tick.Marker.(wholeTicks); got != c.want {
			t.Errorf("steps to %v: whole numbers %v, want %v", c.last, got, c.want)
		}
	}
}

// A logarithmic axis has powers of ten, and between them what fits: the axis of a panel of 250 points over a decade and
// a half had three numbers, .5, 1 and 5, and one of a decade had one.
func TestLogTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		ticks  logTicks
		want   string
	}{
		{.8, 120, logTicks{200}, "1 2 5 10 20 50 100"},
		{.8, 120, logTicks{70}, "1 3 10 30 100"},
		{.8, 120, logTicks{40}, "1 10 100"},
		{1e-4, 1e4, logTicks{100}, "1e-4 0.01 1 100 10000"},
		{1e-4, 1e4, logTicks{5}, "1e-4"},
		{.0009, 2e6, logTicks{300}, "0.001 0.003 0.01 0.03 0.1 0.3 1 3 10 30 100 300 1000 3000 10000 30000 1e5 3e5 1e6"},
		{1, 3, logTicks{250}, "1.0 1.5 2.0 2.5 3.0"},
		{3, 20, logTicks{250}, "5 10 20"},
		{.14, 9, logTicks{190}, "0.2 0.5 1 2 5"},
		{1.5, 9.5, logTicks{250}, "2 3 4 5 6 7 8 9"},
		{1.5, 9.5, logTicks{80}, "2 3 5 7"},
	} {
		got := ""
		last := 0.
		for _, tick := range c.ticks.Ticks(c.lo, c.hi) {
			if tick.Value < c.lo || tick.Value > c.hi || tick.Value <= last {
				t.Errorf("tick %v after %v, within [%v, %v]", tick.Value, last, c.lo, c.hi)
			}
			if last = tick.Value; tick.Label != "" {
				got += " " + tick.Label
			}
		}
		if want := " " + replaceMinus(c.want); replaceMinus(got) != want {
			t.Errorf("ticks of [%v, %v]:%s, want%s", c.lo, c.hi, got, want)
		}
	}
}

// An area of many points is drawn in pieces that begin in order at every point once and reach into the next one.
func TestAreaPieces(t *testing.T) {
	const n = 10_000
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = float64(i)
	}
	across := func(x float64) float64 { return x / (n - 1) }
	if few := areaPieces(xs[:100], across); len(few) != 1 || few[0] != [2]int{0, 100} {
		t.Errorf("100 points are in the pieces %v", few)
	}
	pieces := areaPieces(xs, across)
	if len(pieces) < thinColumns/pieceColumns || pieces[0][0] != 0 || pieces[len(pieces)-1][1] != n {
		t.Fatalf("%d pieces, from %v to %v", len(pieces), pieces[0], pieces[len(pieces)-1])
	}
	for k := 1; k < len(pieces); k++ {
		if reach := across(xs[pieces[k-1][1]-1]) - across(xs[pieces[k][0]]); reach < 1./thinColumns && k < len(pieces)-1 {
			t.Errorf("piece %d reaches %v columns into the next", k-1, thinColumns*reach)
		}
	}
}

func replaceMinus(s string) string {
	out := ""
	for _, r := range s {
		if r == '−' {
			r = '-'
		}
		out += string(r)
	}
	return out
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
		x, y, w := math.Sin(float64(i)), math.Cos(1.7*float64(i)), float64(i%7)
		rows[0], rows[1], rows[2] = append(rows[0], x), append(rows[1], y), append(rows[2], w)
		mass, cx, cy = mass+w, cx+w*x, cy+w*y
	}
	xs, ys, weights := mergeParticles(rows[:], span{-1, 1}, span{-1, 1})
	if len(xs) >= 5000 {
		t.Fatal("nothing is merged")
	}
	var m, mx, my float64
	for i, w := range weights {
		m, mx, my = m+6*w, mx+6*w*xs[i], my+6*w*ys[i] // weights are relative to the greatest, 6
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
	diverging, err := divergingTable()
	if err != nil {
		t.Fatal(err)
	}
	sequential, err := sequentialTable()
	if err != nil {
		t.Fatal(err)
	}
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

// Numbers have four digits, and more where different ones would look alike.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   string
	}{
		{[]float64{1, -2.5, 1e-9}, "[1 −2.5 1e−09]"},
		{[]float64{12345.6, 2, -1234567}, "[12346 2 −1.235e+06]"},
		{[]float64{12345.6, 12345.9}, "[12345.6 12345.9]"},
		{[]float64{1000.01, 1000.04, 3}, "[1000.01 1000.04 3]"},
		{[]float64{.5, .5}, "[0.5 0.5]"},
		{[]float64{1, math.Nextafter(1, 2)}, "[1 1.0000000000000002]"},
		{[]float64{.1, math.NaN(), math.NaN()}, "[0.1 NaN NaN]"},
	} {
		if got := fmt.Sprint(numbers(c.values...)); got != c.want {
			t.Errorf("%v: %s, want %s", c.values, got, c.want)
		}
	}
}

// areasOf are the data areas of a grid's panels on canvases of one size, each a trace of the given values.
func areasOf(t *testing.T, opt GridOptions, panels int, size vg.Point, values ...float64) (*grid, []vg.Rectangle) {
	t.Helper()
	var figures []*Figure
	for range panels {
		f, err := Traces([]Trace{{Name: "a", Series: Series{Value: values}}}, TraceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		figures = append(figures, f)
	}
	fig, err := Grid(opt, figures...)
	if err != nil {
		t.Fatal(err)
	}
	g := fig.body.(*grid)
	in := inset{}
	for _, cell := range g.cells {
		in.left, in.right = max(in.left, cell.left(size)), max(in.right, cell.right(size))
		in.bottom, in.top = max(in.bottom, cell.bottom(size)), max(in.top, cell.top(size))
	}
	var areas []vg.Rectangle
	for _, cell := range g.cells {
		c := draw.Canvas{Canvas: new(recorder.Canvas), Rectangle: vg.Rectangle{Max: size}}
		areas = append(areas, cell.(*panel).drawAxes(c, in))
	}
	return g, areas
}

// The data areas of a row have one height, also where only the first panel has numbers, whose highest stands out above
// its axis.
func TestGridRowsAreInLine(t *testing.T) {
	size := vg.Point{X: 200, Y: 100}
	g, areas := areasOf(t, GridOptions{Columns: 3, SharedY: true}, 3, size, -10, 10)
	for i, a := range areas {
		if math.Abs(float64(a.Max.Y-areas[0].Max.Y)) > 1e-6 || math.Abs(float64(a.Min.Y-areas[0].Min.Y)) > 1e-6 {
			t.Errorf("the data area of panel %d is from %v to %v, that of the first from %v to %v", i, a.Min.Y, a.Max.Y,
				areas[0].Min.Y, areas[0].Max.Y)
		}
	}
	if first, second := g.cells[0].top(size), g.cells[1].top(size); first <= second {
		t.Errorf("the numbers of the first panel stand %v out, those of the second, which are not there, %v", first, second)
	}
}

// Axes above each other share out the height of their data, not that of their numbers and labels too, of which the
// lowest has most: the counts below a small reliability diagram would be a line.
func TestAxesShareData(t *testing.T) {
	fig, err := Reliability([]metric.Bin{{Lower: 0, Upper: .5, Count: 9000, Accuracy: .4, Confidence: .3},
		{Lower: .5, Upper: 1, Count: 10, Accuracy: .9, Confidence: .8}}, Frame{})
	if err != nil {
		t.Fatal(err)
	}
	p := fig.body.(*panel)
	for _, height := range []vg.Length{150, 200, 300} {
		area := draw.Canvas{Canvas: nowhere{}, Rectangle: vg.Rectangle{Max: vg.Point{X: 200, Y: height}}}
		var data []vg.Length
		for i, h := range p.heights(area, height, 4) {
			c := area
			c.Max.Y = h
			data = append(data, p.axes[i].sized(c, inset{}).DataCanvas(c).Size().Y)
		}
		if ratio := data[0] / data[1]; len(data) != 2 || ratio < 2 || ratio > 3.3 {
			t.Errorf("%v points high: data of %v, want about 3 to 1", height, data)
		}
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

// Many dots are drawn in short paths: the time to fill a path grows with the square of its length, and ten thousand
// rows took six seconds.
func TestDotsInShortPaths(t *testing.T) {
	const n = 3000
	d := &dots{radius: 2, fill: blue}
	for i := range n {
		d.xs, d.ys = append(d.xs, float64(i%60)), append(d.ys, float64(i/60))
	}
	p := plot.New()
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 60, 0, 50
	canvas := new(recorder.Canvas)
	d.Plot(draw.Canvas{Canvas: canvas, Rectangle: vg.Rectangle{Max: vg.Point{X: 400, Y: 300}}}, p)
	drawn := 0
	for _, action := range canvas.Actions {
		fill, ok := action.(*recorder.Fill)
		if !ok {
			continue
		}
		circles := 0
		for _, c := range fill.Path {
			if c.Type == vg.CloseComp {
				circles++
			}
		}
		if drawn += circles; circles > 1000 {
			t.Errorf("%d dots in one path", circles)
		}
	}
	if drawn != n {
		t.Errorf("%d dots are drawn, want %d", drawn, n)
	}
}

// A label takes no room beside the data, also of a logarithmic axis, whose middle is not the mean of its ends.
func TestLogLabelsTakeNoRoom(t *testing.T) {
	const label = "a long label of an axis"
	for _, c := range []struct {
		name string
		logY bool
	}{{"linear", false}, {"logarithmic", true}} {
		for _, height := range []vg.Length{150, 200, 250} {
			series := Series{Step: []float64{1, 10, 100, 120}, Value: []float64{1, .1, .3, .09}}
			f, err := Traces([]Trace{{Name: "a", Series: series}},
				TraceOptions{LogY: c.logY, Frame: Frame{XLabel: label, YLabel: label}})
			if err != nil {
				t.Fatal(err)
			}
			labelled := f.body.(*panel)
			bare, own := *labelled, *labelled.axes[0]
			own.plot = new(plot.Plot)
			*own.plot = *labelled.axes[0].plot
			own.plot.X.Label.Text, own.plot.Y.Label.Text = "", ""
			bare.axes = []*axes{&own}
			size := vg.Point{X: height, Y: height}
			if got, want := labelled.top(size), bare.top(size); got > want+1 {
				t.Errorf("%s, %v high: %v are left above the data, without labels %v", c.name, height, got, want)
			}
			if got, want := labelled.right(size), bare.right(size); got > want+1 {
				t.Errorf("%s, %v wide: %v are left beside the data, without labels %v", c.name, height, got, want)
			}
		}
	}
}

// The data areas of a column begin and end in line, also where only the lowest panel has numbers, whose last one stands
// out to the right of its axis.
func TestGridColumnsAreInLine(t *testing.T) {
	size := vg.Point{X: 200, Y: 100}
	g, areas := areasOf(t, GridOptions{Columns: 1, SharedX: true}, 2, size, -1, 0, 1)
	if a, b := areas[0], areas[1]; math.Abs(float64(a.Max.X-b.Max.X)) > 1e-6 || math.Abs(float64(a.Min.X-b.Min.X)) > 1e-6 {
		t.Errorf("the upper data area is from %v to %v, the lower from %v to %v", a.Min.X, a.Max.X, b.Min.X, b.Max.X)
	}
	if upper, lower := g.cells[0].right(size), g.cells[1].right(size); upper >= lower {
		t.Errorf("the upper panel, without numbers, stands %v out, the lower %v", upper, lower)
	}
}

// A grid has one colour bar where those of its figures are the same, also in their range and level lines.
func TestGridSharesBar(t *testing.T) {
	lattice, err := NewLattice(0, 1, 3, 0, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*colourBar)
		shared bool
	}{
		"the same":     {func(*colourBar) {}, true},
		"other range":  {func(b *colourBar) { b.values.hi = 2 }, false},
		"other label":  {func(b *colourBar) { b.label = "variance" }, false},
		"other levels": {func(b *colourBar) { b.levels = b.levels[1:] }, false},
	} {
		var figures []*Figure
		for range 2 {
			f, err := DecisionMap(lattice.Fill(func(x, y float64) float64 { return x * y }), DecisionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			figures = append(figures, f)
		}
		c.change(figures[1].body.(*panel).bar)
		fig, err := Grid(GridOptions{Columns: 2}, figures...)
		if err != nil {
			t.Fatal(err)
		}
		g, own := fig.body.(*grid), 0
		for _, cell := range g.cells {
			if cell.(*panel).bar != nil {
				own++
			}
		}
		if shared := g.bar != nil; shared != c.shared || shared && own > 0 || !shared && own != 2 {
			t.Errorf("%s: a bar for all %v, and %d of single figures", name, shared, own)
		}
	}
}

// In a strip so low that the labels of its axis would stand on each other, the highest alone is left.
func TestLowAxis(t *testing.T) {
	for height, low := range map[vg.Length]bool{40: true, 150: false} {
		axes := newAxes("confidence", "rows", span{0, 1}, span{0, 6000})
		p := axes.sized(draw.New(vgimg.New(200, height)), inset{})
		labels, last := 0, ""
		for _, tick := range p.Y.Tick.Marker.Ticks(0, 6000) {
			if tick.Label != "" {
				labels, last = labels+1, tick.Label
			}
		}
		if (labels == 1) != low || last == "0" {
			t.Errorf("%v points high: %d labels, the last %q", height, labels, last)
		}
	}
	// Of its name no ellipsis alone is left.
	for height := vg.Length(40); height < 80; height++ {
		p := newAxes("confidence", "rows", span{0, 1}, span{0, 6000}).sized(draw.New(vgimg.New(200, height)), inset{})
		if p.Y.Label.Text == "…" {
			t.Errorf("%v points high: the name of the axis is %q", height, p.Y.Label.Text)
		}
	}
}

// Two noisy curves of many steps are faint below their running means, which tell them apart; of few steps they are not.
func TestESSOfManySteps(t *testing.T) {
	values := func(n int, level float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = level + 300*float64(i%2)
		}
		return out
	}
	for _, c := range []struct {
		steps int
		told  string
		reach float64 // of the thick blue line, from its lowest to its highest point, in particles
	}{{200, "", 300}, {1000, "faint: each step; thick: running means of 20", 10}} {
		fig, err := ESSCurve(Series{Value: values(c.steps, 100)},
			ESSOptions{UniqueAncestors: values(c.steps, 500), Particles: 1000})
		if err != nil {
			t.Fatal(err)
		}
		p := fig.body.(*panel)
		if got := strings.Join(p.notes, "; "); got != c.told {
			t.Errorf("%d steps: the figure says %q, want %q", c.steps, got, c.told)
		}
		for _, name := range []string{"ESS", "unique ancestors"} {
			i := slices.IndexFunc(p.legend, func(e legendEntry) bool { return e.label == name })
			if i < 0 {
				t.Fatalf("%d steps: no %s in the legend", c.steps, name)
			}
			drawn := p.legend[i].marks[0].(*line)
			middle := drawn.ys[len(drawn.ys)/4 : 3*len(drawn.ys)/4]
			if reach := slices.Max(middle) - slices.Min(middle); math.Abs(reach-c.reach) > 10 {
				t.Errorf("%d steps: the line of %s reaches over %v particles, want %v", c.steps, name, reach, c.reach)
			}
		}
	}
}

// In a grid of many columns dots are smaller, in the legend they are not.
func TestDotsOfSmallPanels(t *testing.T) {
	var figures []*Figure
	for range 5 {
		fig, err := PredictiveBand([]float64{0, 1}, []float64{0, 1}, []float64{1, 1},
			BandOptions{TrainX: []float64{.5}, TrainY: []float64{.5}})
		if err != nil {
			t.Fatal(err)
		}
		figures = append(figures, fig)
	}
	radii := func(columns int) (all []string) {
		t.Helper()
		fig, err := Grid(GridOptions{Columns: columns, SharedY: true}, figures...)
		if err != nil {
			t.Fatal(err)
		}
		svg, err := fig.SVG()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`A([\d.]+),[\d.]+ `).FindAllStringSubmatch(string(svg), -1) {
			if !slices.Contains(all, m[1]) {
				all = append(all, m[1])
			}
		}
		return all
	}
	if wide := radii(1); !slices.Equal(wide, []string{"2.6"}) {
		t.Errorf("alone in a row dots have the radii %q, want 2.6 points", wide)
	}
	small := radii(5)
	if len(small) < 2 || !slices.Contains(small, "2.6") {
		t.Fatalf("in five columns dots have the radii %q, want 2.6 in the legend and smaller ones", small)
	}
	for _, text := range small {
		if r, err := strconv.ParseFloat(text, 64); err != nil || text != "2.6" && (r < 1.2 || r > 2.2) {
			t.Errorf("in five columns a dot has the radius %s, %v", text, err)
		}
	}
}

// What is above Most is cut by the axes' end, and each peak has an arrow there, within the axes: a peak that was
// lowered to the end looked like a plateau.
func TestPeaksAreCut(t *testing.T) {
	series := Series{Value: []float64{1, 9, 8, 1, 2, 1, 5, 1, 1, 1}} // two peaks above 3: at 2 and 3, and at 7
	for _, log := range []bool{false, true} {
		fig, err := Traces([]Trace{{Name: "a", Series: series}}, TraceOptions{Most: 3, LogY: log})
		if err != nil {
			t.Fatal(err)
		}
		p := fig.body.(*panel)
		if got, want := strings.Join(p.notes, ""), "arrows: values above the axis, up to 9"; got != want {
			t.Errorf("the figure says %q, want %q", got, want)
		}
		if top := p.axes[0].plot.Y.Max; top < 3 || top > 3.3 {
			t.Errorf("the axis ends at %v", top)
		}
		canvas := new(recorder.Canvas)
		data := p.drawAxes(draw.Canvas{Canvas: canvas, Rectangle: vg.Rectangle{Max: vg.Point{X: 300, Y: 200}}}, inset{})
		var tips []float64
		for _, action := range canvas.Actions {
			switch a := action.(type) {
			case *recorder.Fill:
				if len(a.Path) == 4 && a.Path[0].Pos.Y == data.Max.Y {
					tips = append(tips, 1+9*float64((a.Path[0].Pos.X-data.Min.X)/data.Size().X))
				}
			case *recorder.Stroke:
				for i := 1; i < len(a.Path); i++ { // along the upper edge
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
	fig, err := Traces([]Trace{{Name: "a", Series: series}}, TraceOptions{Most: 10})
	if err != nil {
		t.Fatal(err)
	}
	if p := fig.body.(*panel); p.axes[0].plot.Y.Max > 9.5 || len(p.notes) > 0 {
		t.Errorf("nothing is cut: the axis ends at %v, and the figure says %q", p.axes[0].plot.Y.Max, p.notes)
	}
}

// Of figures with one range of y, the one that would squeeze the others is cut to their range; not two of them, and
// none of two figures.
func TestSharedYCuts(t *testing.T) {
	for _, c := range []struct {
		tops []float64 // of figures from 0
		want float64   // the end of all, about
		told int       // the figure that says so; -1: none
	}{
		{[]float64{3, 2, 30, 3}, 3, 2}, {[]float64{3, 2, 5, 3}, 5, -1}, {[]float64{3, 30, 30}, 30, -1},
		{[]float64{3, 30}, 30, -1},
	} {
		var figures []*Figure
		for _, top := range c.tops {
			f, err := Traces([]Trace{{Name: "a", Series: Series{Value: []float64{0, top}}}}, TraceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			figures = append(figures, f)
		}
		fig, err := Grid(GridOptions{Columns: 2, SharedY: true}, figures...)
		if err != nil {
			t.Fatal(err)
		}
		for i, cell := range fig.body.(*grid).cells {
			p := cell.(*panel)
			if top := p.axes[0].plot.Y.Max; top < c.want || top > 1.2*c.want {
				t.Errorf("%v: figure %d ends at %v, want about %v", c.tops, i, top, c.want)
			}
			if told := strings.Contains(strings.Join(p.notes, ""), "cut off: alone its axis is from "); told != (i == c.told) {
				t.Errorf("%v: figure %d says %q", c.tops, i, p.notes)
			}
		}
		for _, f := range figures {
			if notes := f.body.(*panel).notes; len(notes) > 0 {
				t.Errorf("%v: a figure outside of the grid says %q", c.tops, notes)
			}
		}
	}
}

// Rows of a legend are filled evenly, but no name is cut for it.
func TestLegendIsNotCut(t *testing.T) {
	p := &panel{legend: []legendEntry{{label: "observed coverage"}, {label: "perfect calibration"}}}
	for width := vg.Length(110); width < 260; width += 10 {
		for _, l := range p.lines(width, 0) {
			for _, e := range l.row {
				if strings.Contains(e.label, ellipsis) {
					t.Errorf("%v points: %q", width, e.label)
				}
			}
		}
	}
}

// Panels of a grid have one set of ticks where they share an axis, though only the outer ones have numbers beside it.
func TestSharedTicks(t *testing.T) {
	var figures []*Figure
	for range 6 {
		f, err := Traces([]Trace{{Name: "a", Series: Series{Step: []float64{-6, 6}, Value: []float64{-3, 1.5}}}},
			TraceOptions{Frame: Frame{Width: 415, Height: 300}})
		if err != nil {
			t.Fatal(err)
		}
		figures = append(figures, f)
	}
	for _, height := range []vg.Length{100, 130, 160, 190} {
		fig, err := Grid(GridOptions{Columns: 2, SharedX: true, SharedY: true}, figures...)
		if err != nil {
			t.Fatal(err)
		}
		canvas := new(recorder.Canvas)
		fig.body.draw(draw.Canvas{Canvas: canvas, Rectangle: vg.Rectangle{Max: vg.Point{X: 600, Y: 3 * height}}}, inset{})
		texts := map[string]int{}
		for _, action := range canvas.Actions {
			if a, ok := action.(*recorder.FillString); ok {
				texts[a.String]++
			}
		}
		for text, n := range texts { // three rows have numbers of y, two columns those of x
			if number := strings.Trim(text, "−0123456789.") == ""; number && n != 2 && n != 3 && n != 5 {
				t.Errorf("%v points high: %q stands there %d times, of %v", height, text, n, texts)
			}
		}
	}
}

// A legend of several rows stays above the axes also in the narrower cells of a grid, which have no numbers.
func TestLegendsAreAboveTheAxes(t *testing.T) {
	for width := 240; width <= 415; width += 5 {
		var figures []*Figure
		for k := range 2 {
			var traces []Trace
			for i := range 5 {
				name := []string{"particles (area: weight)", "density", "50 % of the mass", "90 % of the mass", "99 %"}[i]
				traces = append(traces, Trace{Name: name, Series: Series{Value: []float64{1, 2}}, Style: 1 + (i+k)%5})
			}
			f, err := Traces(traces, TraceOptions{Frame: Frame{Width: width, Height: 300}})
			if err != nil {
				t.Fatal(err)
			}
			figures = append(figures, f)
		}
		fig, err := Grid(GridOptions{Columns: 2, SharedY: true}, figures...)
		if err != nil {
			t.Fatal(err)
		}
		canvas := new(recorder.Canvas)
		w, h := fig.size()
		fig.render(canvas)
		low, top := h, vg.Length(0) // of the legends' text, and of the axes
		for _, action := range canvas.Actions {
			switch a := action.(type) {
			case *recorder.FillString:
				if a.String == "99 %" {
					low = min(low, a.Point.Y)
				}
			case *recorder.Stroke: // the axes' own lines are upright
				if n := len(a.Path); n == 2 && a.Path[0].Pos.X == a.Path[1].Pos.X {
					top = max(top, a.Path[0].Pos.Y, a.Path[1].Pos.Y)
				}
			}
		}
		if low < top {
			t.Errorf("%d pixels, %v points wide: a legend's text stands at %v, and axes end at %v", width, w, low, top)
		}
	}
}

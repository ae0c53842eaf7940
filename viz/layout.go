package viz

import (
	"math"
	"slices"
	"sort"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// panel is one figure: a header of title, notes and legend, below it one or more axes on top of each other that share
// their left and right edges, and optionally a colour bar. The legend has rows of its own, so it never covers data.
type panel struct {
	title  string
	notes  []string
	legend []legendEntry
	axes   []*axes
	bar    *colourBar
}

var _ body = (*panel)(nil)

type legendEntry struct {
	label string
	marks []plot.Thumbnailer
}

func (p *panel) note(s string) {
	if s != "" {
		p.notes = append(p.notes, s)
	}
}

func (p *panel) entry(label string, marks ...plot.Thumbnailer) {
	p.legend = append(p.legend, legendEntry{label, marks})
}

// axes is one coordinate system; share is its part of the panel's height.
type axes struct {
	plot  *plot.Plot
	share float64
}

// newAxes gives empty axes in the package's style. The ranges are the caller's to set.
func newAxes(xLabel, yLabel string, x, y span) *axes {
	p := plot.New()
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font = textStyle(labelSize, black).Font
		a.Label.Padding = 3
		a.Tick.Label.Font = textStyle(tickSize, black).Font
		a.Tick.Length = 4
		a.Tick.LineStyle.Width = 0.7
		a.LineStyle.Width = 0.7
		a.Padding = 0
	}
	p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
	p.X.Min, p.X.Max = x.lo, x.hi
	p.Y.Min, p.Y.Max = y.lo, y.hi
	return &axes{plot: p, share: 1}
}

// logarithmic makes one of the axes logarithmic; its range must be above 0.
func logarithmic(a *plot.Axis) {
	a.Scale = plot.LogScale{}
	a.Tick.Marker = logTicks{}
}

// framed adds the outline of the data area in place of the axes' lines; it is called after all marks are added.
func (a *axes) framed() {
	a.plot.X.LineStyle.Width, a.plot.Y.LineStyle.Width = 0, 0
	a.add(outline{})
}

// add draws marks in this order, without widening the ranges.
func (a *axes) add(marks ...plot.Plotter) {
	x, y := a.plot.X, a.plot.Y
	a.plot.Add(marks...)
	a.plot.X, a.plot.Y = x, y
}

// sized gives the plot with as many ticks as fit its canvas, unless its ticks are set. In a grid those are asked for
// that fit the data area, which all cells have alike.
func (a *axes) sized(c draw.Canvas, in inset) fitted {
	p := *a.plot
	width, height := c.Size().X, c.Size().Y
	if beside := in.left + max(0, in.right); in.left > 0 && beside < besideData {
		width += besideData - beside
	}
	if in.bottom > 0 && in.bottom < besideData {
		height += besideData - in.bottom
	}
	ticked := func(axis *plot.Axis, length vg.Length, each int) {
		count := max(2, int(length)/each)
		ticks, quiet := axis.Tick.Marker, false
		if s, ok := ticks.(silent); ok {
			ticks, quiet = s.Ticker, true
		}
		switch given := ticks.(type) {
		case plot.DefaultTicks:
			ticks = niceTicks{count}
		case wholeTicks:
			ticks = wholeTicks{count}
		case logTicks:
			ticks = logTicks{max(0, length-besideData)}
		case plot.ConstantTicks:
			ticks = named(axis.Tick.Label, given, mostName*c.Size().X)
		}
		if axis.Tick.Marker = ticks; quiet {
			axis.Tick.Marker = silent{ticks}
		}
	}
	ticked(&p.X, width, 58)
	ticked(&p.Y, height, 32)
	// A label that is longer than the data area, beside which the other axis has its own, would make it smaller.
	beside := besideData
	if names, ok := p.Y.Tick.Marker.(plot.ConstantTicks); ok {
		for _, tick := range names {
			beside = max(beside, 20+p.Y.Tick.Label.Width(tick.Label))
		}
	}
	labelled := func(axis *plot.Axis, length vg.Length) {
		axis.Label.TextStyle = narrowed(axis.Label.TextStyle, axis.Label.Text, length)
		axis.Label.Text = cut(axis.Label.TextStyle, axis.Label.Text, length)
		if axis.Label.Text == ellipsis {
			axis.Label.Text = "" // which says as much
		}
	}
	labelled(&p.X, c.Size().X-beside)
	labelled(&p.Y, c.Size().Y-besideData)
	if nice, ok := p.Y.Tick.Marker.(niceTicks); ok {
		ticks := nice.Ticks(p.Y.Min, p.Y.Max)
		height := p.DataCanvas(c).Size().Y
		if len(ticks) > 1 && height*vg.Length(p.Y.Norm(ticks[1].Value)-p.Y.Norm(ticks[0].Value)) < tickSize {
			p.Y.Tick.Marker = highest{nice} // labels would stand on each other
		}
	}
	out := fitted{Plot: &p}
	if _, ok := p.Y.Scale.(plot.LogScale); ok {
		out.y.Label, p.Y.Label.Text = p.Y.Label, ""
	}
	return out
}

// besideData is about what the numbers and the label of an axis take of the other one's length.
const besideData vg.Length = 44

// fitted is a plot that draws the label of a logarithmic y axis itself. The library takes such a label for one at the
// mean of the axis's ends, which is not its middle, and leaves room beside the data as if it stood out there.
type fitted struct {
	*plot.Plot
	y plot.Axis // with this label alone
}

// rest is the part of a canvas that the label drawn here leaves.
func (f fitted) rest(c draw.Canvas) draw.Canvas {
	var left vg.Length
	if l := f.y.Label; l.Text != "" {
		left = l.TextStyle.Height(l.Text) + l.TextStyle.FontExtents().Descent + l.Padding
	}
	return draw.Crop(c, left, 0, 0, 0)
}

// DataCanvas returns the part of a canvas that the axes leave to the data.
func (f fitted) DataCanvas(c draw.Canvas) draw.Canvas {
	return f.Plot.DataCanvas(f.rest(c))
}

// Draw draws the plot and the label.
func (f fitted) Draw(c draw.Canvas) {
	rest := f.rest(c)
	f.Plot.Draw(rest)
	data := f.Plot.DataCanvas(rest)
	middle := data.Center()
	if l := f.y.Label; l.Text != "" {
		sty := l.TextStyle
		sty.Rotation += math.Pi / 2
		at := c.Min.X + l.TextStyle.Height(l.Text) - l.TextStyle.FontExtents().Descent
		c.FillText(sty, vg.Point{X: at, Y: middle.Y}, l.Text)
	}
}

// highest leaves the label of the largest of the ticks alone.
type highest struct{ plot.Ticker }

func (h highest) Ticks(lo, hi float64) []plot.Tick {
	ticks := h.Ticker.Ticks(lo, hi)
	for i := range len(ticks) - 1 {
		ticks[i].Label = ""
	}
	return ticks
}

const (
	lineIcon   vg.Length = 22 // width of the icon of a line or an area
	dotIcon    vg.Length = 9  // of a point
	iconGap    vg.Length = 5  // between icon and label
	entryGap   vg.Length = 14 // between entries
	legendLine vg.Length = 14
	axesGap    vg.Length = 6
)

// iconWidth is narrow where all marks are points.
func (e legendEntry) iconWidth() vg.Length {
	for _, m := range e.marks {
		switch m.(type) {
		case *dots, *intervals:
		default:
			return lineIcon
		}
	}
	return dotIcon
}

// narrowed shrinks a style until s is at most as wide as width.
func narrowed(sty text.Style, s string, width vg.Length) text.Style {
	for sty.Font.Size > minSize && sty.Width(s) > width {
		sty.Font.Size -= 0.25
	}
	return sty
}

// mostName is the largest share of a figure's width that names at an axis take of its data.
const mostName = .4

// named cuts the labels of ticks that are wider than width.
func named(sty text.Style, ticks plot.ConstantTicks, width vg.Length) plot.ConstantTicks {
	ticks = slices.Clone(ticks)
	for i := range ticks {
		ticks[i].Label = cut(sty, ticks[i].Label, width)
	}
	return ticks
}

// ellipsis stands for what is cut off.
const ellipsis = "…"

// cut leaves the beginning and the end, with an ellipsis between, of what is wider than width: names of weights differ
// in their ends, by an index, and labels end with a unit.
func cut(sty text.Style, s string, width vg.Length) string {
	if width <= 0 || sty.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	kept := func(n int) string { return string(runes[:n/2]) + ellipsis + string(runes[len(runes)-(n+1)/2:]) }
	return kept(sort.Search(len(runes), func(n int) bool { return sty.Width(kept(n+1)) > width }))
}

// wrap breaks s between words into lines of at most width where even the smallest size does not fit it in one, and cuts
// words that are wider still.
func wrap(sty text.Style, s string, width vg.Length) (text.Style, []string) {
	sty = narrowed(sty, s, width)
	if sty.Width(s) <= width {
		return sty, []string{s}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		word = cut(sty, word, width)
		switch joined := line + " " + word; {
		case line == "":
			line = word
		case sty.Width(joined) <= width:
			line = joined
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return sty, append(lines, line)
}

// headerLine is a line of text or a row of legend entries.
type headerLine struct {
	height vg.Length
	style  text.Style
	text   string
	row    []legendEntry
	width  vg.Length // of the row
}

// lines lays out the header for a width, with a title of at most that font size; 0: titleSize.
func (p *panel) lines(width, title vg.Length) []headerLine {
	var out []headerLine
	add := func(sty text.Style, s string) {
		if s == "" {
			return
		}
		sty, texts := wrap(sty, s, width)
		for _, t := range texts {
			out = append(out, headerLine{height: sty.Font.Size * 1.35, style: sty, text: t})
		}
	}
	if title == 0 {
		title = titleSize
	}
	add(textStyle(title, black), p.title)
	for _, n := range p.notes {
		add(textStyle(noteSize, grey), n)
	}
	sty := textStyle(legendSize, black)
	sty.XAlign = draw.XLeft
	rows := p.legendRows(sty, width)
	// The narrowest layout of as many rows fills them evenly.
	widest := width / 2
	for _, e := range p.legend {
		widest = max(widest, e.iconWidth()+iconGap+sty.Width(e.label))
	}
	for w := width; len(rows) > 1 && w > widest; w -= 4 {
		if narrower := p.legendRows(sty, w); len(narrower) == len(rows) {
			rows = narrower
		}
	}
	if len(rows) > 0 && len(out) > 0 {
		out[len(out)-1].height += 3
	}
	return append(out, rows...)
}

// legendRows fills rows of at most width with the entries in order.
func (p *panel) legendRows(sty text.Style, width vg.Length) []headerLine {
	var out []headerLine
	row := headerLine{height: legendLine, style: sty}
	flush := func() {
		if len(row.row) > 0 {
			out = append(out, row)
			row.row, row.width = nil, 0
		}
	}
	for _, e := range p.legend {
		e.label = cut(sty, e.label, width-e.iconWidth()-iconGap)
		w := e.iconWidth() + iconGap + sty.Width(e.label)
		if len(row.row) > 0 && row.width+entryGap+w > width {
			flush()
		}
		if len(row.row) > 0 {
			row.width += entryGap
		}
		row.row = append(row.row, e)
		row.width += w
	}
	flush()
	return out
}

const headerGap vg.Length = 7 // below the header

func (p *panel) header(width vg.Length) vg.Length {
	var h vg.Length
	for _, l := range p.lines(width, 0) {
		h += l.height
	}
	return h + headerGap
}

// titleFont is the font size that fits the title into a width.
func (p *panel) titleFont(width vg.Length) vg.Length {
	return narrowed(textStyle(titleSize, black), p.title, width).Font.Size
}

// room is enough for labels and two ticks on each of the axes.
func (p *panel) room() vg.Length { return 70 * vg.Length(len(p.axes)) }

// left is the widest of the axes' numbers and labels.
func (p *panel) left(size vg.Point) (most vg.Length) {
	for _, d := range p.dataOf(size) {
		most = max(most, d.Min.X)
	}
	return most
}

// right returns the margin at the right: the part of the axes' numbers beyond the data area, and the width of the
// colour bar.
func (p *panel) right(size vg.Point) (most vg.Length) {
	for _, d := range p.dataOf(size) {
		most = max(most, size.X-d.Max.X)
	}
	if p.bar != nil {
		most += p.bar.width()
	}
	return most
}

// bottom is the height of the lowest axis's numbers and label.
func (p *panel) bottom(size vg.Point) vg.Length {
	all := p.dataOf(size)
	return all[len(all)-1].Min.Y
}

// top returns the height of the axes' numbers that reach above the highest data area.
func (p *panel) top(size vg.Point) vg.Length { return size.Y - p.dataOf(size)[0].Max.Y }

// dataOf returns the data areas of the axes, each on a canvas of that size.
func (p *panel) dataOf(size vg.Point) (areas []vg.Rectangle) {
	c := draw.Canvas{Canvas: nowhere{}, Rectangle: vg.Rectangle{Max: size}}
	for _, a := range p.axes {
		areas = append(areas, a.sized(c, inset{}).DataCanvas(c).Rectangle)
	}
	return areas
}

// nowhere is a canvas on which nothing is drawn.
type nowhere struct{ vg.Canvas }

func (p *panel) draw(c draw.Canvas, in inset) {
	area := draw.Crop(c, 0, 0, 0, -in.header)
	if p.bar != nil {
		area = draw.Crop(area, 0, -p.bar.width(), 0, 0)
		in.right -= p.bar.width()
	}
	data := p.drawAxes(area, in)
	if p.bar != nil {
		bar := c
		bar.Min.X, bar.Max.X = area.Max.X, c.Max.X
		bar.Min.Y, bar.Max.Y = data.Min.Y, data.Max.Y
		p.bar.draw(bar)
	}
	p.drawHeader(c, data, in.title)
}

// drawHeader draws title, notes and legend at the top of a canvas, over its data.
func (p *panel) drawHeader(c draw.Canvas, data vg.Rectangle, title vg.Length) {
	// Centred over the data, moved as far as the canvas needs.
	place := func(width vg.Length) vg.Length {
		x := (data.Min.X+data.Max.X)/2 - width/2
		return max(c.Min.X, min(x, c.Max.X-width))
	}
	y := c.Max.Y
	for _, l := range p.lines(c.Size().X, title) {
		middle := y - l.height/2
		y -= l.height
		if l.row == nil {
			w := l.style.Width(l.text)
			c.FillText(l.style, vg.Point{X: place(w) + w/2, Y: middle}, l.text)
			continue
		}
		x := place(l.width)
		for _, e := range l.row {
			icon := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
				Min: vg.Point{X: x, Y: middle - legendLine*0.42},
				Max: vg.Point{X: x + e.iconWidth(), Y: middle + legendLine*0.30},
			}}
			for _, m := range e.marks {
				m.Thumbnail(&icon)
			}
			x += e.iconWidth() + iconGap
			c.FillText(l.style, vg.Point{X: x, Y: middle}, e.label)
			x += l.style.Width(e.label) + entryGap
		}
	}
}

// heights share out a height, so that the data areas of the axes, without the numbers and labels below them, have their
// shares of what is left.
func (p *panel) heights(area draw.Canvas, free vg.Length, total float64) []vg.Length {
	heights := make([]vg.Length, len(p.axes))
	beside := make([]vg.Length, len(p.axes))
	for i, a := range p.axes {
		heights[i] = free * vg.Length(a.share/total)
		c := draw.Canvas{Canvas: nowhere{}, Rectangle: area.Rectangle}
		c.Min.Y = c.Max.Y - heights[i]
		beside[i] = heights[i] - a.sized(c, inset{}).DataCanvas(c).Size().Y
	}
	if left := free - sum(beside); left > 0 {
		for i, a := range p.axes {
			heights[i] = beside[i] + left*vg.Length(a.share/total)
		}
	}
	return heights
}

// drawAxes draws the axes from top to bottom and gives the rectangle from the first one's data to the last one's.
func (p *panel) drawAxes(area draw.Canvas, in inset) vg.Rectangle {
	var total float64
	for _, a := range p.axes {
		total += a.share
	}
	free := area.Size().Y - axesGap*vg.Length(len(p.axes)-1)
	heights := p.heights(area, free, total)
	canvases := make([]draw.Canvas, len(p.axes))
	plots := make([]fitted, len(p.axes))
	top := area.Max.Y
	left, right := area.Min.X+in.left, area.Max.X-max(0, in.right)
	for i, a := range p.axes {
		canvases[i] = area
		canvases[i].Max.Y = top
		canvases[i].Min.Y = top - heights[i]
		top = canvases[i].Min.Y - axesGap
		plots[i] = a.sized(canvases[i], in)
		d := plots[i].DataCanvas(canvases[i])
		if i == 0 {
			canvases[i].Max.Y -= max(0, in.top-(canvases[i].Max.Y-d.Max.Y))
		}
		if i == len(p.axes)-1 {
			canvases[i].Min.Y += max(0, in.bottom-(d.Min.Y-canvases[i].Min.Y))
		}
		left, right = max(left, d.Min.X), min(right, d.Max.X)
	}
	data := vg.Rectangle{Min: vg.Point{X: left}, Max: vg.Point{X: right}}
	for i, pl := range plots {
		d := pl.DataCanvas(canvases[i])
		c := draw.Crop(canvases[i], left-d.Min.X, right-d.Max.X, 0, 0)
		d = pl.DataCanvas(c)
		if i == 0 {
			data.Max.Y = d.Max.Y
		}
		data.Min.Y = d.Min.Y
		pl.Draw(c)
	}
	return data
}

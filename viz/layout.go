package viz

import (
	"math"
	"sort"
	"strings"

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
	bar    string // the label of a bar with the colours from 0 to 1, right of the axes; empty: there is none
	square bool   // the data are: both axes have the same range, so that what is round is seen to be
}

var _ body = (*panel)(nil)

type legendEntry struct {
	label string
	marks []mark
}

func (p *panel) note(s string) {
	if s != "" {
		p.notes = append(p.notes, s)
	}
}

func (p *panel) entry(label string, marks ...mark) {
	p.legend = append(p.legend, legendEntry{label, marks})
}

// axes is one coordinate system.
type axes struct {
	x, y  axis
	marks []mark
	share vg.Length // of the panel's height
}

// newAxes gives empty axes.
func newAxes(xLabel, yLabel string, x, y span) *axes {
	return &axes{x: axis{span: x, label: xLabel}, y: axis{span: y, label: yLabel}, share: 1}
}

// add draws marks in this order.
func (a *axes) add(marks ...mark) { a.marks = append(a.marks, marks...) }

const (
	tickLength vg.Length = 4
	tickGap    vg.Length = 2.5             // between a tick and its number
	labelLine            = labelSize * 1.4 // the height of a label, with space
	besideData vg.Length = 44              // about what numbers and label take of a cell
	axesGap    vg.Length = 10              // between axes above each other
)

// numbers are the ticks that fit a cell of the given size, and the styles of their numbers or names. Names that would
// not stand side by side stand upright.
func (a *axes) numbers(size vg.Point) (x, y []tick, xStyle, yStyle text.Style) {
	xStyle, yStyle = textStyle(tickSize, black), textStyle(tickSize, black)
	xStyle.YAlign, yStyle.XAlign = draw.YTop, draw.XRight
	width := size.X - besideData
	x, y = a.x.ticks(width, 42), a.y.ticks(size.Y-besideData, 24)
	wide, _ := extent(xStyle, x)
	switch {
	case a.x.names == nil:
		if x = a.x.ticks(width, max(42, 1.4*wide)); wide*vg.Length(len(x)) > width {
			x = x[:1]
		}
	case wide*vg.Length(len(x)) > .8*width:
		xStyle.Rotation, xStyle.XAlign, xStyle.YAlign = math.Pi/2, draw.XRight, draw.YCenter
	}
	return x, y, xStyle, yStyle
}

// extent is the width and the height of the largest number.
func extent(style text.Style, ticks []tick) (width, height vg.Length) {
	for _, t := range ticks {
		size := style.Rectangle(t.label).Size()
		width, height = max(width, size.X), max(height, size.Y)
	}
	return width, height
}

// margins are what stands around data: the numbers and labels of axes, and a colour bar.
type margins struct{ left, right, bottom, top vg.Length }

// union has room for both.
func (m margins) union(o margins) margins {
	return margins{max(m.left, o.left), max(m.right, o.right), max(m.bottom, o.bottom), max(m.top, o.top)}
}

// margins has room for half a number beyond the data.
func (a *axes) margins(size vg.Point) (m margins) {
	x, y, xStyle, yStyle := a.numbers(size)
	m = margins{left: tickLength, right: tickLength, bottom: tickSize / 2, top: tickSize / 2}
	if !a.y.quiet {
		width, _ := extent(yStyle, y)
		m.left += tickGap + width
		if a.y.label != "" {
			m.left += labelLine
		}
	}
	if !a.x.quiet {
		width, height := extent(xStyle, x)
		m.left, m.right = max(m.left, width/2), max(m.right, width/2)
		m.bottom = tickLength + tickGap + height
		if a.x.label != "" {
			m.bottom += labelLine
		}
	}
	return m
}

// draw draws the axes around their data, which have the given margins at their left and below. Size is that of the
// cell for which ticks and margins were found.
func (a *axes) draw(data draw.Canvas, left, bottom vg.Length, size vg.Point) {
	p := plane{data, a.x, a.y}
	xTicks, yTicks, xStyle, yStyle := a.numbers(size)
	thin, faint := stroke(black, .7), stroke(gridGrey, .6)
	for _, t := range xTicks {
		at := p.at(t.value, a.y.lo)
		p.StrokeLine2(faint, at.X, p.Min.Y, at.X, p.Max.Y)
	}
	for _, t := range yTicks {
		at := p.at(a.x.lo, t.value)
		p.StrokeLine2(faint, p.Min.X, at.Y, p.Max.X, at.Y)
	}
	for _, m := range a.marks {
		m.draw(p)
	}
	p.SetLineStyle(thin)
	p.Stroke(p.Path())
	if !a.x.quiet {
		for _, t := range xTicks {
			at := p.at(t.value, a.y.lo)
			p.StrokeLine2(thin, at.X, at.Y, at.X, at.Y-tickLength)
			p.FillText(xStyle, vg.Point{X: at.X, Y: at.Y - tickLength - tickGap}, t.label)
		}
		style, label := fitted(textStyle(labelSize, black), a.x.label, p.Size().X)
		p.FillText(style, vg.Point{X: p.Center().X, Y: p.Min.Y - bottom + labelSize*.6}, label)
	}
	if !a.y.quiet {
		for _, t := range yTicks {
			at := p.at(a.x.lo, t.value)
			p.StrokeLine2(thin, at.X, at.Y, at.X-tickLength, at.Y)
			// the box has room for descenders, digits have none
			p.FillText(yStyle, vg.Point{X: at.X - tickLength - tickGap, Y: at.Y + tickSize*.06}, t.label)
		}
		style, label := fitted(textStyle(labelSize, black), a.y.label, p.Size().Y)
		style.Rotation = math.Pi / 2
		p.FillText(style, vg.Point{X: p.Min.X - left + labelSize*.6, Y: p.Center().Y}, label)
	}
}

const (
	lineIcon   vg.Length = 22 // width of the icon of a line or an area
	dotIcon    vg.Length = 9  // of a point
	iconGap    vg.Length = 5  // between icon and label
	entryGap   vg.Length = 14 // between entries
	legendLine vg.Length = 14
	headerGap  vg.Length = 7 // below the header
)

// icon is where the entry's icon stands on a canvas.
func (e legendEntry) icon(c vg.Canvas, at vg.Point) draw.Canvas {
	corner := vg.Point{X: at.X + e.iconWidth(), Y: at.Y + legendLine*.3}
	return draw.Canvas{Canvas: c, Rectangle: vg.Rectangle{Min: vg.Point{X: at.X, Y: at.Y - legendLine*.42}, Max: corner}}
}

// iconWidth is narrow where all marks are points or upright.
func (e legendEntry) iconWidth() vg.Length {
	for _, m := range e.marks {
		_, point := m.(*dots)
		if l, ok := m.(*line); !point && !(ok && l.upright) {
			return lineIcon
		}
	}
	return dotIcon
}

func (e legendEntry) width() vg.Length {
	return e.iconWidth() + iconGap + textStyle(legendSize, black).Width(e.label)
}

// fitted shrinks a style until s is at most as wide as width, and cuts what is still wider.
func fitted(style text.Style, s string, width vg.Length) (text.Style, string) {
	for style.Font.Size > minSize && style.Width(s) > width {
		style.Font.Size -= 0.25
	}
	return style, cut(style, s, width)
}

// ellipsis stands for the letters that are cut off.
const ellipsis = "…"

// cut leaves the beginning and the end, with an ellipsis between, of a text wider than width: names of weights differ
// in their ends, by an index, and labels end with a unit.
func cut(sty text.Style, s string, width vg.Length) string {
	if sty.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	kept := func(n int) string { return string(runes[:n/2]) + ellipsis + string(runes[len(runes)-(n+1)/2:]) }
	return kept(sort.Search(len(runes), func(n int) bool { return sty.Width(kept(n+1)) > width }))
}

// cutName is a name at an axis, which takes at most .4 of a figure's width.
func cutName(name string, f Frame) string {
	return cut(textStyle(tickSize, black), name, .4*points(f.Width))
}

// headerLine is a line of text or a row of legend entries.
type headerLine struct {
	height, width vg.Length
	style         text.Style
	text          string
	row           []legendEntry
}

// lines lays out the header for a width: words and legend entries fill their lines in order. Words that are wider are
// cut.
func (p *panel) lines(width vg.Length) (out []headerLine) {
	add := func(style text.Style, s string) {
		first := len(out)
		for _, word := range strings.Fields(s) {
			word = cut(style, word, width)
			if last := len(out) - 1; last >= first && style.Width(out[last].text+" "+word) <= width {
				out[last].text += " " + word
			} else {
				out = append(out, headerLine{height: style.Font.Size * 1.35, style: style, text: word})
			}
		}
	}
	add(textStyle(titleSize, black), p.title)
	for _, n := range p.notes {
		add(textStyle(noteSize, grey), n)
	}
	style := textStyle(legendSize, black)
	style.XAlign = draw.XLeft
	for i, e := range p.legend {
		e.label = cut(style, e.label, width-e.iconWidth()-iconGap)
		if last := len(out) - 1; i > 0 && out[last].width+entryGap+e.width() <= width {
			out[last].row = append(out[last].row, e)
			out[last].width += entryGap + e.width()
		} else {
			out = append(out, headerLine{height: legendLine, width: e.width(), style: style, row: []legendEntry{e}})
		}
	}
	return out
}

func (p *panel) header(width vg.Length) vg.Length {
	h := headerGap
	for _, l := range p.lines(width) {
		h += l.height
	}
	return h
}

// room is enough for labels and two ticks on each of the axes.
func (p *panel) room() vg.Length { return 70 * vg.Length(len(p.axes)) }

// shareOf is the part of a cell that some of the axes have, so that data have their shares.
func (p *panel) shareOf(a *axes, size vg.Point) vg.Point {
	var total vg.Length
	for _, other := range p.axes {
		total += other.share
	}
	data := size.Y - besideData*vg.Length(len(p.axes))
	return vg.Point{X: size.X, Y: besideData + data*a.share/total}
}

// margins are those around all axes: the numbers and labels between them are within.
func (p *panel) margins(size vg.Point) (m margins) {
	for _, a := range p.axes {
		own := a.margins(p.shareOf(a, size))
		m = m.union(own)
		m.bottom = own.bottom
	}
	if p.bar != "" {
		m.right += barWidth
	}
	return m
}

// draw draws the header, the axes from top to bottom and the colour bar.
func (p *panel) draw(c draw.Canvas, in inset) {
	p.drawHeader(c)
	data := draw.Crop(c, in.left, -in.right, in.bottom, -in.top-in.header)
	if size := data.Size(); p.square {
		wide, high := max(0, size.X-size.Y)/2, max(0, size.Y-size.X)/2
		data = draw.Crop(data, wide, -wide, high, -high)
	}
	free, total := data.Size().Y, vg.Length(0)
	bottoms := make([]vg.Length, len(p.axes))
	for i, a := range p.axes {
		if bottoms[i] = in.bottom; i+1 < len(p.axes) {
			bottoms[i] = a.margins(p.shareOf(a, in.size)).bottom
			free -= bottoms[i] + axesGap
		}
		total += a.share
	}
	own := data
	for i, a := range p.axes {
		own.Min.Y = own.Max.Y - free*a.share/total
		a.draw(own, in.left, bottoms[i], p.shareOf(a, in.size))
		own.Max.Y = own.Min.Y - bottoms[i] - axesGap
	}
	if p.bar != "" {
		drawBar(data, c.Max.X-barWidth, p.bar)
	}
}

// drawHeader draws title, notes and legend at the top of a canvas.
func (p *panel) drawHeader(c draw.Canvas) {
	y := c.Max.Y
	for _, l := range p.lines(c.Size().X) {
		y -= l.height
		at := vg.Point{X: c.Center().X - l.width/2, Y: y + l.height/2}
		if l.row == nil {
			c.FillText(l.style, at, l.text)
		}
		for _, e := range l.row {
			for _, m := range e.marks {
				m.icon(e.icon(c.Canvas, at))
			}
			c.FillText(l.style, vg.Point{X: at.X + e.iconWidth() + iconGap, Y: at.Y}, e.label)
			at.X += e.width() + entryGap
		}
	}
}

const (
	barGap    vg.Length = 12 // between data and the colour bar
	barColour vg.Length = 13 // the width of its colours
	barWidth            = barGap + barColour + tickLength + tickGap + 20 + labelSize*1.3
)

// drawBar draws the key of colours from 0 to 1, as high as the data, in the column from the given place on.
func drawBar(data draw.Canvas, from vg.Length, label string) {
	c := data
	c.Min.X, c.Max.X = from+barGap, from+barGap+barColour
	c.DrawImage(c.Rectangle, divergingColours.picture(true))
	thin := stroke(black, .7)
	c.SetLineStyle(thin)
	c.Stroke(c.Path())
	style := textStyle(tickSize, black)
	style.XAlign = draw.XLeft
	for _, t := range (axis{span: span{0, 1}}).ticks(c.Size().Y, 40) {
		y := c.Y(t.value)
		c.StrokeLine2(thin, c.Max.X, y, c.Max.X+tickLength, y)
		c.FillText(style, vg.Point{X: c.Max.X + tickLength + tickGap, Y: y + tickSize*.06}, t.label)
	}
	style, label = fitted(textStyle(labelSize, black), label, c.Size().Y)
	style.Rotation = math.Pi / 2
	c.FillText(style, vg.Point{X: from + barWidth - labelSize*.6, Y: c.Center().Y}, label)
}

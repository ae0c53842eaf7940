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
	bar    *colourBar
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
	x, y   axis
	marks  []mark
	share  vg.Length // of the panel's height
	framed bool      // an outline of the data area in place of the axes' lines
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
	mostName             = .4              // the largest share of a figure's width that a name at an axis takes
)

// ticks are those that fit a cell of the given size.
func (a *axes) ticks(size vg.Point) (x, y []tick) {
	sty := textStyle(tickSize, black)
	width, height := size.X-besideData, size.Y-besideData
	x = a.x.ticks(width, int(size.X)/58, func(label string) vg.Length { return sty.Width(label) })
	return x, a.y.ticks(height, int(size.Y)/27, func(string) vg.Length { return tickSize * .7 })
}

// numbers are the styles of the numbers or names at both axes. Names that would not stand side by side stand upright.
func (a *axes) numbers(width vg.Length) (x, y text.Style) {
	x, y = textStyle(tickSize, black), textStyle(tickSize, black)
	x.YAlign, y.XAlign = draw.YTop, draw.XRight
	for _, t := range a.x.names {
		if x.Width(t.label)*vg.Length(len(a.x.names)) > .6*width {
			x.Rotation, x.XAlign, x.YAlign = math.Pi/2, draw.XRight, draw.YCenter
		}
	}
	return x, y
}

// margins are what stands around data: the numbers and labels of axes, and a colour bar.
type margins struct{ left, right, bottom, top vg.Length }

// union has room for both.
func (m margins) union(o margins) margins {
	return margins{max(m.left, o.left), max(m.right, o.right), max(m.bottom, o.bottom), max(m.top, o.top)}
}

// margins has room for numbers also where the first and the last stand out of the data.
func (a *axes) margins(size vg.Point) (m margins) {
	x, y := a.numbers(size.X)
	xTicks, yTicks := a.ticks(size)
	m.left, m.bottom = tickLength, tickLength
	width, height := size.X-besideData, size.Y-besideData
	if !a.x.quiet {
		for _, t := range xTicks {
			box, at := x.Rectangle(cut(x, t.label, mostName*size.X)).Size(), width*vg.Length(a.x.norm(t.value))
			m = m.union(margins{box.X/2 - at, box.X/2 - (width - at), tickLength + tickGap + box.Y, 0})
		}
		if a.x.label != "" {
			m.bottom += labelLine
		}
	}
	if !a.y.quiet {
		for _, t := range yTicks {
			if t.label == "" {
				continue
			}
			at := height * vg.Length(a.y.norm(t.value))
			wide := y.Width(cut(y, t.label, mostName*size.X))
			m = m.union(margins{tickLength + tickGap + wide, 0, tickSize/2 - at, tickSize/2 - (height - at)})
		}
		if a.y.label != "" {
			m.left += labelLine
		}
	}
	return m
}

// draw draws the axes around their data. The cell has room for their numbers and labels, and size is that for which
// their ticks and margins were found.
func (a *axes) draw(data draw.Canvas, cell vg.Rectangle, size vg.Point) {
	p := plane{data, a.x, a.y}
	xTicks, yTicks := a.ticks(size)
	thin, faint := stroke(black, .7), stroke(gridGrey, .6)
	for _, t := range xTicks {
		if at := p.at(t.value, a.y.lo); t.label != "" {
			p.StrokeLine2(faint, at.X, p.Min.Y, at.X, p.Max.Y)
		}
	}
	for _, t := range yTicks {
		if at := p.at(a.x.lo, t.value); t.label != "" {
			p.StrokeLine2(faint, p.Min.X, at.Y, p.Max.X, at.Y)
		}
	}
	for _, m := range a.marks {
		m.draw(p)
	}
	if a.framed {
		p.SetLineStyle(thin)
		p.Stroke(p.Path())
	} else {
		p.StrokeLines(thin, []vg.Point{{X: p.Min.X, Y: p.Max.Y}, p.Min, {X: p.Max.X, Y: p.Min.Y}})
	}
	x, y := a.numbers(size.X)
	number := func(axis axis, t tick, sty text.Style, at vg.Point, out vg.Point) {
		length := tickLength
		if t.label == "" || axis.quiet {
			t.label, length = "", tickLength/2
		}
		p.StrokeLine2(thin, at.X, at.Y, at.X+length*out.X, at.Y+length*out.Y)
		at = at.Add(out.Scale(tickLength + tickGap))
		at.Y += tickSize * .06 // the box has room for descenders, digits have none
		p.FillText(sty, at, cut(sty, t.label, mostName*size.X))
	}
	for _, t := range xTicks {
		number(a.x, t, x, p.at(t.value, a.y.lo), vg.Point{Y: -1})
	}
	for _, t := range yTicks {
		number(a.y, t, y, p.at(a.x.lo, t.value), vg.Point{X: -1})
	}
	label := func(axis axis, data, cell span) (sty text.Style, text string, middle vg.Length) {
		if axis.quiet {
			axis.label = ""
		}
		sty = narrowed(textStyle(labelSize, black), axis.label, vg.Length(cell.hi-cell.lo))
		text = cut(sty, axis.label, vg.Length(cell.hi-cell.lo))
		return sty, text, place(sty.Width(text), data, cell)
	}
	sty, text, middle := label(a.x, along(data.Min.X, data.Max.X), along(cell.Min.X, cell.Max.X))
	p.FillText(sty, vg.Point{X: middle, Y: cell.Min.Y + labelSize*.6}, text)
	if text != "" {
		cell.Min.Y += labelLine // the corner is that label's
	}
	sty, text, middle = label(a.y, along(data.Min.Y, data.Max.Y), along(cell.Min.Y, cell.Max.Y))
	sty.Rotation = math.Pi / 2
	p.FillText(sty, vg.Point{X: cell.Min.X + labelSize*.6, Y: middle}, text)
}

func along(lo, hi vg.Length) span { return span{float64(lo), float64(hi)} }

// place returns the middle of a text or a row of that width: over data, moved as far as the cell needs.
func place(width vg.Length, data, cell span) vg.Length {
	middle, half := (data.lo+data.hi)/2, float64(width)/2
	return vg.Length(max(cell.lo+half, min(middle, cell.hi-half)))
}

const (
	lineIcon   vg.Length = 22 // width of the icon of a line or an area
	dotIcon    vg.Length = 9  // of a point
	iconGap    vg.Length = 5  // between icon and label
	entryGap   vg.Length = 14 // between entries
	legendLine vg.Length = 14
	axesGap    vg.Length = 6
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

// narrowed shrinks a style until s is at most as wide as width.
func narrowed(sty text.Style, s string, width vg.Length) text.Style {
	for sty.Font.Size > minSize && sty.Width(s) > width {
		sty.Font.Size -= 0.25
	}
	return sty
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

// wrap breaks s between words into lines of at most width, and cuts words that are wider.
func wrap(sty text.Style, s string, width vg.Length) (lines []string) {
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
	return append(lines, line)
}

// headerLine is a line of text or a row of legend entries.
type headerLine struct {
	height, width vg.Length
	style         text.Style
	text          string
	row           []legendEntry
}

// smallCell is the width of a cell, in points, below which its title is no larger than a label.
const smallCell = 300

// lines lays out the header for a width.
func (p *panel) lines(width vg.Length) (out []headerLine) {
	add := func(sty text.Style, s string) {
		if s == "" {
			return
		}
		for _, t := range wrap(sty, s, width) {
			out = append(out, headerLine{height: sty.Font.Size * 1.35, width: sty.Width(t), style: sty, text: t})
		}
	}
	var title vg.Length = titleSize
	if width < smallCell {
		title = labelSize
	}
	add(textStyle(title, black), p.title)
	for _, n := range p.notes {
		add(textStyle(noteSize, grey), n)
	}
	rows := p.legendRows(width)
	// The narrowest layout of as many rows fills them evenly.
	widest := width / 2
	for _, e := range p.legend {
		widest = max(widest, e.width())
	}
	for w := width; len(rows) > 1 && w > widest; w -= 4 {
		if narrower := p.legendRows(w); len(narrower) == len(rows) {
			rows = narrower
		}
	}
	if len(rows) > 0 && len(out) > 0 {
		out[len(out)-1].height += 3
	}
	return append(out, rows...)
}

// legendRows fills rows of at most width with the entries in order.
func (p *panel) legendRows(width vg.Length) (out []headerLine) {
	sty := textStyle(legendSize, black)
	sty.XAlign = draw.XLeft
	for _, e := range p.legend {
		e.label = cut(sty, e.label, width-e.iconWidth()-iconGap)
		if last := len(out) - 1; last >= 0 && out[last].width+entryGap+e.width() <= width {
			out[last].row = append(out[last].row, e)
			out[last].width += entryGap + e.width()
		} else {
			out = append(out, headerLine{height: legendLine, width: e.width(), style: sty, row: []legendEntry{e}})
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
	for i, a := range p.axes {
		own := a.margins(p.shareOf(a, size))
		if i > 0 {
			own.top = m.top
		}
		bottom := own.bottom
		m = m.union(own)
		m.bottom = bottom
	}
	if p.bar != nil {
		m.right += p.bar.width()
	}
	return m
}

// draw draws the axes from top to bottom, the colour bar and the header.
func (p *panel) draw(c draw.Canvas, in inset) {
	data := draw.Crop(c, in.left, -in.right, in.bottom, -in.top-in.header)
	between := make([]vg.Length, len(p.axes)) // below each of the axes: its numbers and label, and numbers above the next
	free, total := data.Size().Y, vg.Length(0)
	for i, a := range p.axes {
		total += a.share
		if i+1 < len(p.axes) {
			next := p.axes[i+1]
			between[i] = a.margins(p.shareOf(a, in.size)).bottom + axesGap + next.margins(p.shareOf(next, in.size)).top
			free -= between[i]
		} else {
			between[i] = in.bottom
		}
	}
	top := data.Max.Y
	for i, a := range p.axes {
		own := data
		own.Max.Y, own.Min.Y = top, top-free*a.share/total
		cell := c.Rectangle
		cell.Max.Y, cell.Min.Y = top, own.Min.Y-between[i]
		if i+1 < len(p.axes) {
			cell.Min.Y += axesGap
		}
		if p.bar != nil {
			cell.Max.X -= p.bar.width()
		}
		a.draw(own, cell, p.shareOf(a, in.size))
		top = own.Min.Y - between[i]
	}
	if p.bar != nil {
		bar := data
		bar.Min.X, bar.Max.X = c.Max.X-p.bar.width(), c.Max.X
		p.bar.draw(bar)
	}
	p.drawHeader(c, data.Rectangle)
}

// drawHeader draws title, notes and legend at the top of a canvas, over its data.
func (p *panel) drawHeader(c draw.Canvas, data vg.Rectangle) {
	y := c.Max.Y
	for _, l := range p.lines(c.Size().X) {
		middle := vg.Point{X: place(l.width, along(data.Min.X, data.Max.X), along(c.Min.X, c.Max.X)), Y: y - l.height/2}
		y -= l.height
		if l.row == nil {
			c.FillText(l.style, middle, l.text)
			continue
		}
		at := vg.Point{X: middle.X - l.width/2, Y: middle.Y}
		for _, e := range l.row {
			for _, m := range e.marks {
				m.icon(e.icon(c.Canvas, at))
			}
			c.FillText(l.style, vg.Point{X: at.X + e.iconWidth() + iconGap, Y: at.Y}, e.label)
			at.X += e.width() + entryGap
		}
	}
}

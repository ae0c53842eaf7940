package viz

import (
	"image/color"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// mark is drawn in the axes and, small, in the legend.
type mark interface {
	draw(p plane)
	icon(c draw.Canvas)
}

// plane is the part of a canvas that shows data, with the ranges of its axes.
type plane struct {
	draw.Canvas
	x, y axis
}

// at is the place of a point.
func (p plane) at(x, y float64) vg.Point {
	return vg.Point{X: p.X(p.x.norm(x)), Y: p.Y(p.y.norm(y))}
}

// line joins points in order, or is several lines of one style, such as the pieces of a level line.
type line struct {
	pieces  []polyline
	style   draw.LineStyle
	upright bool // in the legend
}

type polyline struct{ xs, ys []float64 }

func newLine(xs, ys []float64, style draw.LineStyle) *line {
	return &line{pieces: []polyline{{xs, ys}}, style: style}
}

// level is a line across the axes at one height.
func level(y float64, x span, style draw.LineStyle) *line {
	return newLine([]float64{x.lo, x.hi}, []float64{y, y}, style)
}

func (l *line) add(xs, ys []float64) { l.pieces = append(l.pieces, polyline{xs, ys}) }

// mostGroups is the number of groups of consecutive points to which a curve of at least twice as many is thinned: about
// the points (1/72 inch) of a figure's width.
const mostGroups = 500

// longest is the number of points after which a path is drawn and goes on as another: the time to draw one grows with
// the square of its length. One with dashes is not cut, since they would begin anew, nor one that can be seen through,
// since the next repeats its last stroke.
const longest = 100

func groupSize(points int) int { return max(1, points/mostGroups) }

func (l *line) draw(p plane) {
	var path vg.Path
	stroke := func() {
		p.SetLineStyle(l.style)
		p.Stroke(path)
		path = nil
	}
	_, _, _, alpha := l.style.Color.RGBA()
	whole := alpha < 0xffff || l.style.Dashes != nil
	for _, piece := range l.pieces {
		if len(piece.xs) == 1 { // a line of one point has no stroke
			(&dots{xs: piece.xs, ys: piece.ys, radius: max(2, l.style.Width), fill: l.style.Color}).draw(p)
			continue
		}
		for _, points := range p.ClipLinesXY(piece.thinned(p)) {
			for i, at := range points {
				if i == 0 {
					path.Move(at)
					continue
				}
				if path.Line(at); len(path) > longest && !whole {
					stroke()
					path.Move(points[i-1])
					path.Line(at)
				}
			}
		}
	}
	if len(path) > 0 {
		stroke()
	}
}

// thinned are the places of a line's points, of long ones the least and the greatest of each group.
func (l polyline) thinned(p plane) (places []vg.Point) {
	size := groupSize(len(l.xs))
	for from := 0; from < len(l.xs); from += size {
		group := l.ys[from:min(from+size, len(l.ys))]
		ends := []int{from + floats.MinIdx(group), from + floats.MaxIdx(group)}
		slices.Sort(ends)
		for _, i := range slices.Compact(ends) {
			places = append(places, p.at(l.xs[i], l.ys[i]))
		}
	}
	return places
}

func (l *line) icon(c draw.Canvas) {
	if at := c.Center(); l.upright {
		c.StrokeLine2(l.style, at.X, c.Min.Y-1, at.X, c.Max.Y+1)
	} else {
		c.StrokeLine2(l.style, c.Min.X, at.Y, c.Max.X, at.Y)
	}
}

// area fills between two curves over the same x, which ascend.
type area struct {
	xs, lower, upper []float64
	fill             color.Color
}

// draw fills what encloses each group of points.
func (a *area) draw(p plane) {
	var below, above []vg.Point
	size := groupSize(len(a.xs))
	for from := 0; from < len(a.xs); from += size {
		to := min(from+size, len(a.xs))
		below = append(below, p.at(a.xs[from], slices.Min(a.lower[from:to])))
		above = append(above, p.at(a.xs[from], slices.Max(a.upper[from:to])))
	}
	slices.Reverse(above)
	p.FillPolygon(a.fill, p.ClipPolygonXY(append(below, above...)))
}

func (a *area) icon(c draw.Canvas) { fillRect(c, c.Rectangle, a.fill) }

func fillRect(c draw.Canvas, r vg.Rectangle, fill color.Color) {
	c.SetColor(fill)
	c.Fill(r.Path())
}

// dots are points of one shape; classes have different ones, so that they are told apart without colour.
type dots struct {
	xs, ys []float64
	shape  draw.GlyphDrawer // nil: a circle
	radius vg.Length
	radii  []vg.Length // of each point; nil: all have the same
	fill   color.Color
	halo   vg.Length // the width of a white edge
	open   bool      // circles alone, which leave curves below them to be seen
}

func (d *dots) icon(c draw.Canvas) { d.one(c, c.Center(), d.radius, d.halo) }

func (d *dots) one(c draw.Canvas, at vg.Point, radius, halo vg.Length) {
	if d.open {
		c.DrawGlyph(draw.GlyphStyle{Color: d.fill, Radius: radius, Shape: draw.RingGlyph{}}, at)
		return
	}
	style := draw.GlyphStyle{Color: white, Radius: radius + halo, Shape: d.shape}
	if d.shape == nil {
		style.Shape = draw.CircleGlyph{}
	}
	if halo > 0 {
		c.DrawGlyph(style, at)
	}
	style.Color, style.Radius = d.fill, radius
	c.DrawGlyph(style, at)
}

const (
	// smallPanel is the width of a data area, in points, below which dots are smaller: in a grid of many columns dots of
	// the usual size would cover the curves.
	smallPanel = 150
	// mostDots is the largest number that is drawn of points; each takes 100 to 200 bytes of an SVG.
	mostDots = 3000
)

// draw draws the dots within the axes, of more than mostDots every second, or third and so on.
func (d *dots) draw(p plane) {
	scale := min(1, p.Size().X/smallPanel)
	for i := 0; i < len(d.xs); i += 1 + (len(d.xs)-1)/mostDots {
		radius := d.radius
		if d.radii != nil {
			radius = d.radii[i]
		}
		d.one(p.Canvas, p.at(d.xs[i], d.ys[i]), scale*radius, scale*d.halo)
	}
}

// bars are rectangles from (x0, y0) to (x1, y1), cut at the axes' edge.
type bars struct {
	x0, x1, y0, y1 []float64
	fill           color.Color
	edge           draw.LineStyle
}

func (b *bars) add(x0, x1, y0, y1 float64) {
	b.x0, b.x1, b.y0, b.y1 = append(b.x0, x0), append(b.x1, x1), append(b.y0, y0), append(b.y1, y1)
}

func (b *bars) draw(p plane) {
	for i := range b.x0 {
		lo, hi := p.at(b.x0[i], min(b.y0[i], b.y1[i])), p.at(b.x1[i], max(b.y0[i], b.y1[i]))
		part := p.Canvas
		part.Min = vg.Point{X: max(lo.X, p.Min.X), Y: max(lo.Y, p.Min.Y)}
		part.Max = vg.Point{X: min(hi.X, p.Max.X), Y: min(hi.Y, p.Max.Y)}
		if part.Min.X <= part.Max.X && part.Min.Y <= part.Max.Y {
			b.icon(part)
		}
	}
}

func (b *bars) icon(c draw.Canvas) {
	if b.fill != nil {
		fillRect(c, c.Rectangle, b.fill)
	}
	if b.edge.Width > 0 {
		c.SetLineStyle(b.edge)
		c.Stroke(c.Path())
	}
}

// textMark is a text centred at a point or, beside it, a little to its right, within the axes.
type textMark struct {
	x, y   float64
	text   string
	beside bool
	light  bool // white, on a dark ground
}

func (l *textMark) draw(p plane) {
	style, at := textStyle(tickSize, black), p.at(l.x, l.y)
	if l.light {
		style.Color = white
	}
	if l.beside {
		style.XAlign = draw.XLeft
		at.X = min(at.X+4, p.Max.X-4-style.Width(l.text))
	}
	p.FillText(style, at, l.text)
}

func (l *textMark) icon(draw.Canvas) {}

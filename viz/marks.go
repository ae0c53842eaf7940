package viz

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// mark is drawn in the axes and, small, in the legend.
type mark interface {
	plot.Plotter
	plot.Thumbnailer
}

var _ = []mark{(*line)(nil), (*area)(nil), (*dots)(nil), (*bars)(nil), (*intervals)(nil), (*paths)(nil), (*heat)(nil)}

// gridLines are faint lines at the ticks.
type gridLines struct{}

func (gridLines) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	sty := stroke(gridGrey, 0.6)
	for _, v := range majorTicks(p.X) {
		c.StrokeLine2(sty, x(v), c.Min.Y, x(v), c.Max.Y)
	}
	for _, v := range majorTicks(p.Y) {
		c.StrokeLine2(sty, c.Min.X, y(v), c.Max.X, y(v))
	}
}

// majorTicks returns the ticks that have a number, or would have one in a neighbour.
func majorTicks(a plot.Axis) (values []float64) {
	ticks := a.Tick.Marker
	if s, ok := ticks.(silent); ok {
		ticks = s.Ticker
	}
	for _, t := range ticks.Ticks(a.Min, a.Max) {
		if !t.IsMinor() {
			values = append(values, t.Value)
		}
	}
	return values
}

// outline is the frame around the data.
type outline struct{}

func (outline) Plot(c draw.Canvas, _ *plot.Plot) {
	c.SetLineStyle(stroke(black, 0.7))
	path := c.Rectangle.Path()
	c.Stroke(path)
}

// line joins points, in order.
type line struct {
	xs, ys []float64
	style  draw.LineStyle
}

func (l *line) Plot(c draw.Canvas, p *plot.Plot) {
	strokeLine(c, p, l.style, l.xs, l.ys)
}

// strokeLine draws a line as it is, or one of many points thinned and in pieces.
func strokeLine(c draw.Canvas, p *plot.Plot, style draw.LineStyle, xs, ys []float64) {
	if len(xs) == 1 { // a line of one point has no stroke
		(&dots{xs: xs, ys: ys, radius: max(2, style.Width), fill: style.Color}).Plot(c, p)
		return
	}
	if len(xs) <= 4*thinColumns {
		c.StrokeLines(style, c.ClipLinesXY(pixels(c, p, xs, ys))...)
		return
	}
	xs, ys = thinLine(xs, ys, p.X.Norm)
	c.StrokeLines(style, c.ClipLinesXY(linePieces(pixels(c, p, xs, ys))...)...)
}

func (l *line) Thumbnail(c *draw.Canvas) {
	y := c.Center().Y
	c.StrokeLine2(l.style, c.Min.X, y, c.Max.X, y)
}

// level is a line across the axes at one height.
func level(y float64, x span, style draw.LineStyle) *line {
	return &line{xs: []float64{x.lo, x.hi}, ys: []float64{y, y}, style: style}
}

func pixels(c draw.Canvas, p *plot.Plot, xs, ys []float64) []vg.Point {
	x, y := p.Transforms(&c)
	pts := make([]vg.Point, len(xs))
	for i := range xs {
		pts[i] = vg.Point{X: x(xs[i]), Y: y(ys[i])}
	}
	return pts
}

// area fills between two curves over the same x.
type area struct {
	xs, lower, upper []float64
	fill             color.Color
}

func (a *area) Plot(c draw.Canvas, p *plot.Plot) {
	for _, piece := range areaPieces(a.xs, p.X.Norm) {
		from, to := piece[0], piece[1]
		lx, ly, ux, uy := a.xs[from:to], a.lower[from:to], a.xs[from:to], a.upper[from:to]
		if len(a.xs) > 4*thinColumns {
			lx, ly = thinLine(lx, ly, p.X.Norm)
			ux, uy = thinLine(ux, uy, p.X.Norm)
		}
		pts := pixels(c, p, lx, ly)
		top := pixels(c, p, ux, uy)
		slices.Reverse(top)
		c.FillPolygon(a.fill, c.ClipPolygonXY(append(pts, top...)))
	}
}

func (a *area) Thumbnail(c *draw.Canvas) { fillRect(c, c.Rectangle, a.fill) }

func fillRect(c *draw.Canvas, r vg.Rectangle, fill color.Color) {
	c.SetColor(fill)
	c.Fill(r.Path())
}

// shape is the form of a point; forms differ so that classes are told apart without colour.
type shape int

const (
	circle shape = iota
	triangle
	square
	diamond
)

// shapePath gives the outline of a shape; all have about the same area.
func shapePath(s shape, at vg.Point, r vg.Length) vg.Path {
	var path vg.Path
	polygon := func(corners int, start float64, r vg.Length) {
		for k := range corners {
			sin, cos := math.Sincos(start + 2*math.Pi*float64(k)/float64(corners))
			pt := vg.Point{X: at.X + r*vg.Length(cos), Y: at.Y + r*vg.Length(sin)}
			if k == 0 {
				path.Move(pt)
			} else {
				path.Line(pt)
			}
		}
		path.Close()
	}
	switch s {
	case triangle:
		polygon(3, math.Pi/2, r*1.35)
	case square:
		polygon(4, math.Pi/4, r*1.22)
	case diamond:
		polygon(4, 0, r*1.32)
	default:
		path.Move(vg.Point{X: at.X + r, Y: at.Y})
		path.Arc(at, r, 0, 2*math.Pi)
		path.Close()
	}
	return path
}

// dots are points of one shape. Radii, one a point, is nil where all have the same.
type dots struct {
	xs, ys []float64
	shape  shape
	radius vg.Length
	radii  []vg.Length
	fill   color.Color
	edge   draw.LineStyle
}

func (d *dots) one(c *draw.Canvas, at vg.Point, r vg.Length) {
	path := shapePath(d.shape, at, r)
	c.SetColor(d.fill)
	c.Fill(path)
	if d.edge.Width > 0 {
		c.SetLineStyle(d.edge)
		c.Stroke(path)
	}
}

// smallPanel is the width of a data area, in points, below which dots are smaller: in a grid of many columns dots of
// the usual size would cover the curves.
const smallPanel = 150

func (d *dots) Plot(c draw.Canvas, p *plot.Plot) {
	indices := make([]int, len(d.xs))
	for i := range indices {
		indices[i] = i
	}
	if d.radii == nil {
		indices = thinPoints(d.xs, d.ys, p.X.Norm, p.Y.Norm)
	}
	if len(indices) > mostShapes && !raster(c) {
		d.drawAsImage(c, p, indices)
		return
	}
	d.draw(c, p, indices)
}

// mostShapes is the largest number of dots that an SVG or a PDF has as shapes, 100 to 200 bytes each; more are drawn as
// an image.
const mostShapes = 5000

// drawAsImage draws dots as an image of 192 dots per inch over the data area, with room for those at its edge.
func (d *dots) drawAsImage(c draw.Canvas, p *plot.Plot, indices []int) {
	room := 2 * d.radius
	if d.radii != nil {
		room = 2 * slices.Max(d.radii)
	}
	whole := draw.Crop(c, -room, room, -room, room)
	size := whole.Size()
	picture := vgimg.NewWith(vgimg.UseWH(size.X, size.Y), vgimg.UseDPI(pixelRatio*pixelsPerInch),
		vgimg.UseBackgroundColor(color.Transparent))
	d.draw(draw.Crop(draw.NewCanvas(picture, size.X, size.Y), room, -room, room, -room), p, indices)
	c.DrawImage(whole.Rectangle, picture.Image())
}

// raster says whether a canvas has pixels.
func raster(c vg.Canvas) bool {
	for {
		inner, ok := c.(draw.Canvas)
		if !ok {
			_, ok = c.(*vgimg.Canvas)
			return ok
		}
		c = inner.Canvas
	}
}

func (d *dots) draw(c draw.Canvas, p *plot.Plot, indices []int) {
	x, y := p.Transforms(&c)
	scale := min(1, c.Size().X/smallPanel)
	own := *d
	own.edge.Width *= scale
	var joint vg.Path
	flush := func() {
		if len(joint) > 0 {
			c.SetColor(d.fill)
			c.Fill(joint)
		}
		joint = nil
	}
	for k, i := range indices {
		if k%mostJoint == 0 {
			flush()
		}
		at := vg.Point{X: x(d.xs[i]), Y: y(d.ys[i])}
		r := scale * d.radius
		if d.radii != nil {
			r = scale * d.radii[i]
		}
		switch {
		case !c.Contains(at):
		case d.edge.Width == 0: // one path for many is much shorter
			joint = append(joint, shapePath(d.shape, at, r)...)
		default:
			own.one(&c, at, r)
		}
	}
	flush()
}

// mostJoint is the largest number of dots in one path: the time to fill a path grows with the square of its length.
const mostJoint = 256

func (d *dots) Thumbnail(c *draw.Canvas) { d.one(c, c.Center(), d.radius) }

// bars are rectangles from (x0, y0) to (x1, y1), cut at the axes' edge.
type bars struct {
	x0, x1, y0, y1 []float64
	fill           color.Color
	edge           draw.LineStyle
}

func (b *bars) rectangle(c *draw.Canvas, r vg.Rectangle) {
	if b.fill != nil {
		fillRect(c, r, b.fill)
	}
	if b.edge.Width > 0 {
		c.SetLineStyle(b.edge)
		c.Stroke(r.Path())
	}
}

func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i := range b.x0 {
		lo := vg.Point{X: max(x(b.x0[i]), c.Min.X), Y: max(y(min(b.y0[i], b.y1[i])), c.Min.Y)}
		hi := vg.Point{X: min(x(b.x1[i]), c.Max.X), Y: min(y(max(b.y0[i], b.y1[i])), c.Max.Y)}
		if lo.X <= hi.X && lo.Y <= hi.Y {
			b.rectangle(&c, vg.Rectangle{Min: lo, Max: hi})
		}
	}
}

func (b *bars) Thumbnail(c *draw.Canvas) { b.rectangle(c, c.Rectangle) }

// textMark is a text centred at a point or, beside it, a little to its right.
type textMark struct {
	x, y   float64
	text   string
	beside bool
}

func (l *textMark) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style, at := textStyle(tickSize, black), vg.Point{X: x(l.x), Y: y(l.y)}
	if l.beside {
		style.XAlign = draw.XLeft
		at.X += 4
	}
	c.FillText(style, at, l.text)
}

// intervals are vertical lines from lower to upper, cut at the axes' edge.
type intervals struct {
	xs, lower, upper []float64
	style            draw.LineStyle
}

func (v *intervals) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	_, log := p.Y.Scale.(plot.LogScale)
	for i := range v.xs {
		lo, hi := c.Min.Y, min(y(v.upper[i]), c.Max.Y)
		if !log || v.lower[i] > 0 {
			lo = max(y(v.lower[i]), c.Min.Y)
		}
		if px := x(v.xs[i]); lo < hi && c.ContainsX(px) {
			c.StrokeLine2(v.style, px, lo, px, hi)
		}
	}
}

func (v *intervals) Thumbnail(c *draw.Canvas) {
	c.StrokeLine2(v.style, c.Center().X, c.Min.Y-1, c.Center().X, c.Max.Y+1)
}

// peaks are arrows at the upper edge of the axes, one wherever a curve leaves them there: the curve ends at the edge,
// and the arrow says that it goes on.
type peaks struct {
	xs, ys []float64
	colour color.Color
}

// peaksNote says what the arrows are.
func peaksNote(highest float64) string {
	return fmt.Sprintf("arrows: values above the axis, up to %s", number(highest))
}

const peakWidth vg.Length = 5 // of an arrow's head

func (m *peaks) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	last := vg.Length(math.Inf(-1))
	for i := 0; i < len(m.xs); i++ {
		if !(m.ys[i] > p.Y.Max) {
			continue
		}
		first := i
		for i+1 < len(m.xs) && m.ys[i+1] > p.Y.Max {
			i++
		}
		at := min(max((x(m.xs[first])+x(m.xs[i]))/2, c.Min.X+peakWidth/2), c.Max.X-peakWidth/2)
		if at-last < peakWidth { // it would stand on the one before
			continue
		}
		last = at
		tip, base := vg.Point{X: at, Y: c.Max.Y}, c.Max.Y-peakWidth
		c.StrokeLine2(stroke(m.colour, 1.2), at, base-peakWidth, at, base)
		c.FillPolygon(m.colour, []vg.Point{tip, {X: at - peakWidth/2, Y: base}, {X: at + peakWidth/2, Y: base}})
	}
}

// paths are several lines of one style, such as the pieces of a level line.
type paths struct {
	lines []polyline
	style draw.LineStyle
}

type polyline struct{ xs, ys []float64 }

func (m *paths) Plot(c draw.Canvas, p *plot.Plot) {
	for _, l := range m.lines {
		strokeLine(c, p, m.style, l.xs, l.ys)
	}
}

func (m *paths) Thumbnail(c *draw.Canvas) {
	y := c.Center().Y
	c.StrokeLine2(m.style, c.Min.X, y, c.Max.X, y)
}

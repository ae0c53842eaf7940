package viz

import (
	"fmt"
	"image"
	"image/color"
	imagedraw "image/draw"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
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

func (p plane) points(xs, ys []float64) []vg.Point {
	points := make([]vg.Point, len(xs))
	for i := range xs {
		points[i] = p.at(xs[i], ys[i])
	}
	return points
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

func (l *line) draw(p plane) {
	for _, piece := range l.pieces {
		if len(piece.xs) == 1 { // a line of one point has no stroke
			(&dots{xs: piece.xs, ys: piece.ys, radius: max(2, l.style.Width), fill: l.style.Color}).draw(p)
			continue
		}
		for _, short := range pieces(p, piece.xs, piece.ys) {
			p.StrokeLines(l.style, p.ClipLinesXY(short)...)
		}
	}
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

func (a *area) draw(p plane) {
	tops := pieces(p, a.xs, a.upper)
	for i, lower := range pieces(p, a.xs, a.lower) {
		slices.Reverse(tops[i])
		p.FillPolygon(a.fill, p.ClipPolygonXY(append(lower, tops[i]...)))
	}
}

func (a *area) icon(c draw.Canvas) { fillRect(c, c.Rectangle, a.fill) }

func fillRect(c draw.Canvas, r vg.Rectangle, fill color.Color) {
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

// path gives the outline of a shape; all have about the same area.
func (s shape) path(at vg.Point, r vg.Length) (path vg.Path) {
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
	}
	path.Close()
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

func (d *dots) icon(c draw.Canvas) { d.one(c, c.Center(), d.radius) }

func (d *dots) one(c draw.Canvas, at vg.Point, r vg.Length) {
	path := d.shape.path(at, r)
	c.SetColor(d.fill)
	c.Fill(path)
	if d.edge.Width > 0 {
		c.SetLineStyle(d.edge)
		c.Stroke(path)
	}
}

const (
	// smallPanel is the width of a data area, in points, below which dots are smaller: in a grid of many columns dots of
	// the usual size would cover the curves.
	smallPanel = 150
	// mostShapes is the largest number of dots that an SVG or a PDF has as shapes, 100 to 200 bytes each; more are an
	// image.
	mostShapes = 5000
	// mostJoint is the largest number of dots in one path: the time to fill a path grows with the square of its length.
	mostJoint = 256
)

func (d *dots) draw(p plane) {
	shown := *d
	if d.radii == nil {
		shown.xs, shown.ys = thinPoints(d.xs, d.ys, p)
	}
	scale := min(1, p.Size().X/smallPanel)
	shown.edge.Width *= scale
	if len(shown.xs) <= mostShapes || raster(p.Canvas) {
		shown.all(p, scale)
		return
	}
	room := 2 * d.radius // for those at the edge
	if d.radii != nil {
		room = 2 * slices.Max(d.radii)
	}
	whole := draw.Crop(p.Canvas, -room, room, -room, room)
	picture := vgimg.NewWith(vgimg.UseWH(whole.Size().X, whole.Size().Y), vgimg.UseDPI(pixelRatio*pixelsPerInch),
		vgimg.UseBackgroundColor(color.Transparent))
	shown.all(plane{draw.Crop(draw.New(picture), room, -room, room, -room), p.x, p.y}, scale)
	p.DrawImage(whole.Rectangle, picture.Image())
}

// all draws the dots within the axes.
func (d *dots) all(p plane, scale vg.Length) {
	var joint vg.Path
	flush := func() {
		if len(joint) > 0 {
			p.SetColor(d.fill)
			p.Fill(joint)
		}
		joint = nil
	}
	for i := range d.xs {
		if i%mostJoint == 0 {
			flush()
		}
		at, r := p.at(d.xs[i], d.ys[i]), scale*d.radius
		if d.radii != nil {
			r = scale * d.radii[i]
		}
		switch {
		case !p.Contains(at):
		case d.edge.Width == 0: // one path for many is much shorter
			joint = append(joint, d.shape.path(at, r)...)
		default:
			d.one(p.Canvas, at, r)
		}
	}
	flush()
}

// raster says whether a canvas has pixels.
func raster(c draw.Canvas) bool {
	_, pixels := c.Canvas.(*vgimg.Canvas)
	return pixels
}

// drawImage draws on a raster canvas from RGBA pixels, which are scaled much faster, and on others from the palette
// image, which makes a smaller file.
func drawImage(c draw.Canvas, r vg.Rectangle, img *image.Paletted) {
	if !raster(c) {
		c.DrawImage(r, img)
		return
	}
	pixels := image.NewRGBA(img.Bounds())
	imagedraw.Draw(pixels, img.Bounds(), img, image.Point{}, imagedraw.Src)
	c.DrawImage(r, pixels)
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
}

func (l *textMark) draw(p plane) {
	style, at := textStyle(tickSize, black), p.at(l.x, l.y)
	if l.beside {
		style.XAlign = draw.XLeft
		at.X = min(at.X+4, p.Max.X-4-style.Width(l.text))
	}
	p.FillText(style, at, l.text)
}

func (l *textMark) icon(draw.Canvas) {}

// peaks are arrows at the upper edge of the axes, one wherever a curve leaves them there: the curve ends at the edge,
// and the arrow says that it goes on.
type peaks struct {
	xs, ys []float64
	colour color.Color
}

// peaksNote explains the arrows.
func peaksNote(highest float64) string {
	return fmt.Sprintf("arrows: values above the axis, up to %s", number(highest))
}

const peakWidth vg.Length = 5 // of an arrow's head

func (m *peaks) draw(p plane) {
	last := vg.Length(math.Inf(-1))
	for i := 0; i < len(m.xs); i++ {
		if !(m.ys[i] > p.y.hi) {
			continue
		}
		first := i
		for i+1 < len(m.xs) && m.ys[i+1] > p.y.hi {
			i++
		}
		middle := (p.X(p.x.norm(m.xs[first])) + p.X(p.x.norm(m.xs[i]))) / 2
		at := min(max(middle, p.Min.X+peakWidth/2), p.Max.X-peakWidth/2)
		if at-last < peakWidth { // it would stand on the one before
			continue
		}
		last = at
		base := p.Max.Y - peakWidth
		p.StrokeLine2(stroke(m.colour, 1.2), at, base-peakWidth, at, base)
		p.FillPolygon(m.colour, []vg.Point{{X: at, Y: p.Max.Y}, {X: at - peakWidth/2, Y: base},
			{X: at + peakWidth/2, Y: base}})
	}
}

func (m *peaks) icon(draw.Canvas) {}

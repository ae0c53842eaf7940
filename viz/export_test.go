package viz

import (
	"image/color"
	"maps"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
)

// What other packages reach by predictions, results and posteriors.
var (
	PredictedVsTrue  = predictedVsTrue
	PredictiveBandOf = bandOf
	TrainingCurves   = trainingCurves
)

// ErrNotNotebook is of what is shown outside a notebook.
var ErrNotNotebook = errNotNotebook

// PDF is the figure as PDF.
func (f *Figure) PDF() ([]byte, error) { return f.pdf() }

// Drawn are the options of a band with functions of single particles.
func (o BandOptions) Drawn(draws ...[]float64) BandOptions {
	o.draws = draws
	return o
}

// Drawn are the options of a map with probabilities of single particles.
func (o DecisionOptions) Drawn(draws ...[]float64) DecisionOptions {
	o.draws = draws
	return o
}

// Noted are the options of a band with notes, of data from lo to hi.
func (o BandOptions) Noted(lo, hi float64, notes ...string) BandOptions {
	o.seen, o.notes = &span{lo, hi}, notes
	return o
}

// Look is what the panels are drawn with that have one legend.
type Look struct {
	Notes, Labels   []string             // below the title, and of the legend
	Picture, Legend map[color.NRGBA]bool // the colours of lines and areas
	Image           bool                 // the picture has colours from a table
	Key             bool                 // which stand in the legend or beside it
	Outside         int                  // filled shapes that stand out of the axes
}

// Looks are the looks of a figure, whose panels are drawn with a width and a height in points.
func Looks(f *Figure, width, height vg.Length) (looks []*Look) {
	legended := func(p *panel) *Look {
		l := &Look{Notes: p.notes, Picture: map[color.NRGBA]bool{}, Legend: map[color.NRGBA]bool{}}
		for _, e := range p.legend {
			l.Labels = append(l.Labels, e.label)
			canvas := new(recorder.Canvas)
			icon := e.icon(canvas, vg.Point{})
			for _, m := range e.marks {
				m.icon(icon)
			}
			colours, image, _ := drawn(canvas.Actions, icon.Rectangle)
			maps.Copy(l.Legend, colours)
			l.Key = l.Key || image
		}
		looks = append(looks, l)
		return l
	}
	var of func(b body, shared *Look)
	of = func(b body, shared *Look) {
		switch b := b.(type) {
		case *grid:
			if b.legend != nil {
				shared = legended(b.legend)
				shared.Key = shared.Key || b.bar != nil
			}
			for _, cell := range b.cells {
				of(cell, shared)
			}
		case *panel:
			l := shared
			if l == nil {
				l = legended(b)
			}
			canvas, size := new(recorder.Canvas), vg.Point{X: width, Y: height}
			bare := &panel{axes: b.axes}
			in := inset{margins: bare.margins(size), size: size}
			c := draw.Canvas{Canvas: canvas, Rectangle: vg.Rectangle{Max: size}}
			bare.draw(c, in)
			data := draw.Crop(c, in.left, -in.right, in.bottom, -in.top)
			colours, image, outside := drawn(canvas.Actions, data.Rectangle)
			maps.Copy(l.Picture, colours)
			l.Image, l.Key = l.Image || image, l.Key || b.bar != nil
			l.Outside += outside
		}
	}
	of(f.body, nil)
	return looks
}

// drawn are the colours of strokes and fills, and how many fills reach out of a rectangle.
func drawn(actions []recorder.Action, within vg.Rectangle) (colours map[color.NRGBA]bool, image bool, outside int) {
	colours = map[color.NRGBA]bool{}
	var now color.NRGBA
	for _, action := range actions {
		switch a := action.(type) {
		case *recorder.SetColor:
			now = color.NRGBAModel.Convert(a.Color).(color.NRGBA)
		case *recorder.Stroke:
			colours[now] = true
		case *recorder.DrawImage:
			image = true
		case *recorder.Fill:
			colours[now] = true
			lo, hi := bounds(a.Path)
			if now == white { // the ground, or a point's middle
				continue
			}
			const rounding = .01
			if lo.X < within.Min.X-rounding || lo.Y < within.Min.Y-rounding || hi.X > within.Max.X+rounding ||
				hi.Y > within.Max.Y+rounding {
				outside++
			}
		}
	}
	return colours, image, outside
}

// bounds are the corners of what a path of lines and full circles covers.
func bounds(path vg.Path) (lo, hi vg.Point) {
	inf := vg.Length(math.Inf(1))
	lo, hi = vg.Point{X: inf, Y: inf}, vg.Point{X: -inf, Y: -inf}
	for _, c := range path {
		if c.Type == vg.CloseComp {
			continue
		}
		lo.X, lo.Y = min(lo.X, c.Pos.X-c.Radius), min(lo.Y, c.Pos.Y-c.Radius)
		hi.X, hi.Y = max(hi.X, c.Pos.X+c.Radius), max(hi.Y, c.Pos.Y+c.Radius)
	}
	return lo, hi
}

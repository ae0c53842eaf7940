package viz

import (
	"fmt"
	"image"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Field is a function on a rectangular lattice.
type Field struct {
	X, Y []float64 // coordinates of columns and rows, ascending at even steps, at least 2 each
	// Values at the lattice points, [len(Y), len(X)], row-major: Values[row*len(X)+col] belongs to (X[col], Y[row]).
	Values []float64
}

// NewLattice gives a field without values: columns x rows evenly spaced points on [x0, x1] x [y0, y1].
func NewLattice(x0, x1 float64, columns int, y0, y1 float64, rows int) (Field, error) {
	if !finite(x0) || !finite(x1) || !finite(y0) || !finite(y1) || x1 <= x0 || y1 <= y0 || columns < 2 || rows < 2 {
		return Field{}, fmt.Errorf("viz: lattice of %d columns and %d rows on [%v, %v] x [%v, %v]: it takes at least 2 of "+
			"both, and finite bounds, the upper greater than the lower", columns, rows, x0, x1, y0, y1)
	}
	return Field{X: floats.Span(make([]float64, columns), x0, x1), Y: floats.Span(make([]float64, rows), y0, y1)}, nil
}

// Points lists the lattice points in the order of Values: [len(Y)*len(X), 2], row-major, as a model takes its features.
func (f Field) Points() []float64 {
	pts := make([]float64, 0, 2*len(f.X)*len(f.Y))
	for _, y := range f.Y {
		for _, x := range f.X {
			pts = append(pts, x, y)
		}
	}
	return pts
}

// Fill evaluates g at every lattice point and returns the field with these values.
func (f Field) Fill(g func(x, y float64) float64) Field {
	f.Values = make([]float64, 0, len(f.X)*len(f.Y))
	for _, y := range f.Y {
		for _, x := range f.X {
			f.Values = append(f.Values, g(x, y))
		}
	}
	return f
}

// check returns an error unless the lattice is ascending at even steps and has a value at each point, from least to
// most.
func (f Field) check(name string, least, most float64) error {
	for _, c := range []column{{"X", f.X}, {"Y", f.Y}} {
		n := len(c.values)
		if n < 2 {
			return fmt.Errorf("viz: %s.%s has %d coordinates: at least 2 are needed", name, c.name, n)
		}
		step := (c.values[n-1] - c.values[0]) / float64(n-1)
		for i, v := range c.values {
			if off := math.Abs(v - c.values[0] - float64(i)*step); !finite(v) || !(step > 0) || off > 1e-3*step {
				return fmt.Errorf("viz: %s.%s[%d] = %v: the coordinates must be finite and ascending at even steps", name,
					c.name, i, v)
			}
		}
	}
	if want := len(f.X) * len(f.Y); len(f.Values) != want {
		return fmt.Errorf("viz: %s.Values has %d values, the lattice %d x %d = %d points (rows x columns)",
			name, len(f.Values), len(f.Y), len(f.X), want)
	}
	for i, v := range f.Values {
		if !(v >= least && v <= most) {
			return fmt.Errorf("viz: %s.Values[%d] = %v: it must be within %v and %v", name, i, v, least, most)
		}
	}
	return nil
}

// extent is the ranges of the axes of a field's picture, in which each point has a cell about it.
func (f Field) extent() (x, y span) {
	cells := func(at []float64) span { return span{at[0], at[len(at)-1]}.widen(.5 / float64(len(at)-1)) }
	return cells(f.X), cells(f.Y)
}

func (f Field) at(col, row int) float64 { return f.Values[row*len(f.X)+col] }

// heat paints a field in colours, of values from 0 to 1.
type heat struct {
	field Field
	table *colourTable
}

func (h *heat) draw(p plane) {
	f := h.field
	img := image.NewNRGBA(image.Rect(0, 0, len(f.X), len(f.Y)))
	for j := range f.Y {
		for i := range f.X {
			img.Set(i, len(f.Y)-1-j, h.table.at(f.at(i, j)))
		}
	}
	x, y := f.extent()
	p.DrawImage(vg.Rectangle{Min: p.at(x.lo, y.lo), Max: p.at(x.hi, y.hi)}, img)
}

// icon has the colours from the first to the last.
func (h *heat) icon(c draw.Canvas) { c.DrawImage(c.Rectangle, h.table.picture(false)) }

// contour gives the level line of a field as short pieces: each cell is two triangles, on whose edges the field is
// linear.
func (f Field) contour(level float64) (pieces []polyline) {
	type corner struct{ x, y, v float64 }
	for j := range len(f.Y) - 1 {
		for i := range len(f.X) - 1 {
			var c [4]corner // of the cell
			for k := range c {
				col, row := i+k%2, j+k/2
				c[k] = corner{f.X[col], f.Y[row], f.at(col, row)}
			}
			for _, triangle := range [][3]corner{{c[0], c[1], c[2]}, {c[1], c[3], c[2]}} {
				var l polyline
				for k, a := range triangle {
					if b := triangle[(k+1)%3]; (a.v >= level) != (b.v >= level) {
						t := (level - a.v) / (b.v - a.v)
						l.xs, l.ys = append(l.xs, a.x+t*(b.x-a.x)), append(l.ys, a.y+t*(b.y-a.y))
					}
				}
				if len(l.xs) == 2 {
					pieces = append(pieces, l)
				}
			}
		}
	}
	return pieces
}

package viz

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"sort"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Field is a function on a rectangular lattice.
type Field struct {
	X, Y []float64 // coordinates of columns and rows, strictly ascending, at least 2 each
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

// check returns an error unless the lattice is ascending and has a value at each point, at least one of them finite; it
// counts the non-finite ones.
func (f Field) check(name string) (dropped int, err error) {
	for _, c := range []column{{"X", f.X}, {"Y", f.Y}} {
		if len(c.values) < 2 {
			return 0, fmt.Errorf("viz: %s.%s has %d coordinates: at least 2 are needed", name, c.name, len(c.values))
		}
		for i, v := range c.values {
			if !finite(v) || i > 0 && v <= c.values[i-1] {
				return 0, fmt.Errorf("viz: %s.%s[%d] = %v: the coordinates must be finite and strictly ascending",
					name, c.name, i, v)
			}
		}
	}
	if want := len(f.X) * len(f.Y); len(f.Values) != want {
		return 0, fmt.Errorf("viz: %s.Values has %d values, the lattice %d x %d = %d points (rows x columns)",
			name, len(f.Values), len(f.Y), len(f.X), want)
	}
	_, dropped, err = finiteRows(column{name + ".Values", f.Values})
	return dropped, err
}

func (f Field) at(col, row int) float64 { return f.Values[row*len(f.X)+col] }

// interpolate is bilinear within the lattice; NaN next to a non-finite value.
func (f Field) interpolate(x, y float64) float64 {
	cell := func(axis []float64, v float64) (int, float64) {
		i := min(max(sort.SearchFloat64s(axis, v)-1, 0), len(axis)-2)
		return i, math.Min(math.Max((v-axis[i])/(axis[i+1]-axis[i]), 0), 1)
	}
	i, s := cell(f.X, x)
	j, t := cell(f.Y, y)
	v := (1-t)*((1-s)*f.at(i, j)+s*f.at(i+1, j)) + t*((1-s)*f.at(i, j+1)+s*f.at(i+1, j+1))
	if !finite(v) {
		return math.NaN()
	}
	return v
}

// heat paints a field in colours, smoothly between the lattice points. Where the field has no value it is left blank.
type heat struct {
	field  Field
	values span // the values of the first and the last colour
	table  *colourTable
}

const heatPixels = 420 // along the longer side

func (h *heat) draw(p plane) {
	f := h.field
	r := vg.Rectangle{Min: p.at(f.X[0], f.Y[0]), Max: p.at(f.X[len(f.X)-1], f.Y[len(f.Y)-1])}
	scale := heatPixels / max(r.Size().X, r.Size().Y)
	w, ht := max(2, int(r.Size().X*scale)), max(2, int(r.Size().Y*scale))
	img := image.NewPaletted(image.Rect(0, 0, w, ht), h.table.palette())
	for py := range ht {
		fy := f.Y[len(f.Y)-1] - (float64(py)+0.5)/float64(ht)*(f.Y[len(f.Y)-1]-f.Y[0])
		for px := range w {
			fx := f.X[0] + (float64(px)+0.5)/float64(w)*(f.X[len(f.X)-1]-f.X[0])
			v := f.interpolate(fx, fy)
			if math.IsNaN(v) {
				continue // index 0 is transparent
			}
			img.SetColorIndex(px, py, uint8(1+h.table.index((v-h.values.lo)/(h.values.hi-h.values.lo))))
		}
	}
	drawImage(p.Canvas, r, img)
}

// icon has the colours from the first to the last.
func (h *heat) icon(c draw.Canvas) {
	const steps = 32
	img := image.NewPaletted(image.Rect(0, 0, steps, 1), h.table.palette())
	for i := range steps {
		img.SetColorIndex(i, 0, uint8(1+h.table.index(float64(i)/(steps-1))))
	}
	drawImage(c, c.Rectangle, img)
}

// palette is a transparent entry followed by the table.
func (t *colourTable) palette() color.Palette {
	return append(color.Palette{color.Transparent}, t[:]...)
}

// colourBar is the key of a heat map, right of the axes.
type colourBar struct {
	label  string
	values span
	table  *colourTable
	levels []barLevels
}

const (
	barGap   vg.Length = 12
	barWidth vg.Length = 13
)

func (b *colourBar) ticks() []tick { return axis{span: b.values}.round(5) }

func (b *colourBar) width() vg.Length {
	sty := textStyle(tickSize, black)
	var w vg.Length
	for _, t := range b.ticks() {
		w = max(w, sty.Width(t.label))
	}
	return barGap + barWidth + tickLength + tickGap + w + 4 + labelSize*1.3
}

func (b *colourBar) draw(c draw.Canvas) {
	r := vg.Rectangle{
		Min: vg.Point{X: c.Min.X + barGap, Y: c.Min.Y},
		Max: vg.Point{X: c.Min.X + barGap + barWidth, Y: c.Max.Y},
	}
	img := image.NewPaletted(image.Rect(0, 0, 4, len(b.table)), b.table.palette())
	for i := range b.table {
		for x := range 4 {
			img.SetColorIndex(x, len(b.table)-1-i, uint8(1+i))
		}
	}
	drawImage(c, r, img)
	height := func(v float64) vg.Length { return c.Y(axis{span: b.values}.norm(v)) }
	for _, l := range b.levels {
		for _, value := range l.values {
			c.StrokeLine2(l.style, r.Min.X, height(value), r.Max.X, height(value))
		}
	}
	c.SetLineStyle(stroke(black, 0.7))
	c.Stroke(r.Path())
	sty := textStyle(tickSize, black)
	sty.XAlign = draw.XLeft
	for _, t := range b.ticks() {
		y := height(t.value)
		c.StrokeLine2(stroke(black, 0.7), r.Max.X, y, r.Max.X+tickLength, y)
		// the box has room for descenders, digits have none
		c.FillText(sty, vg.Point{X: r.Max.X + tickLength + tickGap, Y: y + tickSize*0.12}, t.label)
	}
	label := narrowed(textStyle(labelSize, black), b.label, c.Size().Y)
	label.Rotation = math.Pi / 2
	c.FillText(label, vg.Point{X: c.Max.X - labelSize*0.6, Y: c.Center().Y}, cut(label, b.label, c.Size().Y))
}

// contour gives the level line of a field: marching squares with linear interpolation on the lattice's edges, whose
// segments are joined into the longest lines. A cell with a non-finite corner has no segment.
func (f Field) contour(level float64) []polyline {
	// A crossing is named by its edge: 2*node for the edge to the right of a node, 2*node+1 for the one above it.
	nx := len(f.X)
	var segments [][2]int
	for j := range len(f.Y) - 1 {
		for i := range nx - 1 {
			corners := [4]float64{f.at(i, j), f.at(i+1, j), f.at(i+1, j+1), f.at(i, j+1)}
			sum, whole := 0.0, true
			for _, v := range corners {
				whole = whole && finite(v)
				sum += v
			}
			if !whole {
				continue
			}
			node := j*nx + i
			edges := [4]int{2 * node, 2*(node+1) + 1, 2 * (node + nx), 2*node + 1} // bottom, right, top, left
			var crossed []int
			for k := range 4 {
				if (corners[k] >= level) != (corners[(k+1)%4] >= level) {
					crossed = append(crossed, edges[k])
				}
			}
			switch len(crossed) {
			case 2:
				segments = append(segments, [2]int{crossed[0], crossed[1]})
			case 4: // a saddle: the mean of the corners decides which two corners are cut off
				if (sum/4 >= level) == (corners[0] >= level) {
					segments = append(segments, [2]int{crossed[0], crossed[1]}, [2]int{crossed[2], crossed[3]})
				} else {
					segments = append(segments, [2]int{crossed[3], crossed[0]}, [2]int{crossed[1], crossed[2]})
				}
			}
		}
	}
	return f.join(segments, level)
}

// join links segments that end on the same edge. Open lines come first, from one end to the other, then closed ones.
func (f Field) join(segments [][2]int, level float64) []polyline {
	touching := make(map[int][]int, len(segments)) // an edge belongs to at most two segments
	for s, ends := range segments {
		for _, e := range ends {
			touching[e] = append(touching[e], s)
		}
	}
	used := make([]bool, len(segments))
	follow := func(s, from int) polyline {
		var l polyline
		add := func(edge int) {
			x, y := f.crossing(edge, level)
			l.xs, l.ys = append(l.xs, x), append(l.ys, y)
		}
		add(from)
		for {
			used[s] = true
			next := segments[s][0]
			if next == from {
				next = segments[s][1]
			}
			add(next)
			from = next
			found := false
			for _, t := range touching[from] {
				if !used[t] {
					s, found = t, true
				}
			}
			if !found {
				return l
			}
		}
	}
	var lines []polyline
	for s, ends := range segments {
		for _, e := range ends {
			if !used[s] && len(touching[e]) == 1 {
				lines = append(lines, follow(s, e))
			}
		}
	}
	for s, ends := range segments {
		if !used[s] {
			lines = append(lines, follow(s, ends[0]))
		}
	}
	return lines
}

// crossing is the point on an edge where the field, interpolated linearly, equals the level.
func (f Field) crossing(edge int, level float64) (x, y float64) {
	node, up := edge/2, edge%2 == 1
	i, j := node%len(f.X), node/len(f.X)
	a := f.at(i, j)
	if up {
		t := (level - a) / (f.at(i, j+1) - a)
		return f.X[i], f.Y[j] + t*(f.Y[j+1]-f.Y[j])
	}
	t := (level - a) / (f.at(i+1, j) - a)
	return f.X[i] + t*(f.X[i+1]-f.X[i]), f.Y[j]
}

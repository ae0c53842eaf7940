package viz

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// GridOptions are the options of [Grid].
type GridOptions struct {
	// Columns of the grid; 0: as many as fit into 830 CSS pixels, a notebook's width. Figures too wide for them are drawn
	// narrower, and below 240 pixels, or 140 with SharedY, there are fewer columns.
	Columns int
	// ColumnNames are printed above the columns and RowNames left of the rows, one for each; nil: none. If both are given,
	// they replace the figures' titles.
	ColumnNames, RowNames []string
	// SharedX and SharedY give all figures one range of the axis, with numbers and label at the outer figures only; names
	// in place of numbers must be the same in all. Where one of three or more would squeeze all others into less than half
	// of the height, it is cut to their range, and says so.
	SharedX, SharedY bool
}

// cellWidth is the width in CSS pixels of a cell's output in JupyterLab on a screen of 1280, to which wider ones are
// scaled.
const cellWidth = 830

// Grid puts figures side by side, row by row, with their axes aligned. A legend or a colour bar that all of them have
// is drawn once: legends are merged if a name has the same look in all figures and one of them has all names.
func Grid(opt GridOptions, figures ...*Figure) (*Figure, error) {
	if len(figures) == 0 || opt.Columns < 0 {
		return nil, fmt.Errorf("viz: grid of %d figures in %d columns: there must be a figure, and no negative number of "+
			"columns (0: as many as fit)", len(figures), opt.Columns)
	}
	g := &grid{rowNames: opt.RowNames, columnNames: opt.ColumnNames}
	var width, height int
	for i, f := range figures {
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("viz: figure %d of the grid: %w", i, err)
		}
		width, height = max(width, f.width), max(height, f.height)
		g.cells = append(g.cells, f.body)
	}
	g.cols = opt.Columns
	if g.cols == 0 {
		g.cols = min(len(figures), max(1, cellWidth/width))
	}
	least := minPixels
	if opt.SharedY { // the numbers stand once
		least = 140
	}
	g.cols = min(g.cols, cellWidth/least)
	if opt.ColumnNames != nil && len(opt.ColumnNames) != g.cols || opt.RowNames != nil && len(opt.RowNames) != g.rows() {
		return nil, fmt.Errorf("viz: grid of %d x %d figures, %d ColumnNames and %d RowNames: each column or row must have "+
			"one; there are as many columns as fit into %d pixels", g.rows(), g.cols, len(opt.ColumnNames),
			len(opt.RowNames), cellWidth)
	}
	if cell := cellWidth / g.cols; cell < width { // narrower, and a little lower
		height = int(float64(height) * max(.75, float64(cell)/float64(width)))
		width = cell
	}
	if err := g.share(opt); err != nil {
		return nil, err
	}
	total := g.header(points(g.cols*width)) + max(vg.Length(g.rows())*points(height), g.room()+2*margin)
	out := Frame{Width: g.cols * width, Height: int(math.Ceil(float64(total / vg.Inch * pixelsPerInch)))}
	if out.Height > maxPixels {
		return nil, fmt.Errorf("viz: grid of %d x %d pixels: at most %d each way: make the figures smaller by Frame.Height",
			out.Width, out.Height, maxPixels)
	}
	return newFigure(out, g)
}

// grid is the body of figures in cells of one size.
type grid struct {
	cols                  int
	cells                 []body
	legend                *panel // of a legend that all share; nil: none
	bar                   string // the label of a colour bar that all share
	rowNames, columnNames []string
}

var _ body = (*grid)(nil)

func (g *grid) rows() int { return (len(g.cells) + g.cols - 1) / g.cols }

// panels puts copies in the place of the cells that are panels, and returns them.
func (g *grid) panels() (all []*panel) {
	for i, c := range g.cells {
		p, ok := c.(*panel)
		if !ok {
			continue
		}
		own := *p
		own.axes = nil
		for _, a := range p.axes {
			axes := *a
			own.axes = append(own.axes, &axes)
		}
		g.cells[i] = &own
		all = append(all, &own)
	}
	return all
}

// share takes from the panels what they have in common.
func (g *grid) share(opt GridOptions) error {
	all := g.panels()
	if len(all) != len(g.cells) {
		if opt.SharedX || opt.SharedY {
			return fmt.Errorf("viz: SharedX or SharedY of a grid in a grid: share them within the inner ones")
		}
		return nil
	}
	if g.rowNames != nil && g.columnNames != nil {
		for _, p := range all {
			p.title = ""
		}
	}
	if len(all) > 1 {
		g.shareLegend(all)
	}
	if opt.SharedX {
		if err := shareAxes(all, "SharedX", func(a *axes) *axis { return &a.x }); err != nil {
			return err
		}
		for _, p := range all[:max(0, len(all)-g.cols)] {
			p.axes[0].x.quiet = true
		}
	}
	if opt.SharedY {
		if err := shareAxes(all, "SharedY", func(a *axes) *axis { return &a.y }); err != nil {
			return err
		}
		for i, p := range all {
			p.axes[0].y.quiet = i%g.cols > 0
		}
	}
	return nil
}

// shareLegend moves the legends into one, if a label looks the same in all of them and one of them has all labels, and
// the colour bars if they have one label.
func (g *grid) shareLegend(all []*panel) {
	if first := all[0].bar; !slices.ContainsFunc(all, func(p *panel) bool { return p.bar != first }) {
		g.bar = first
		for _, p := range all {
			p.bar = ""
		}
	}
	looks := map[string][]byte{}
	largest := all[0].legend
	for _, p := range all {
		if len(p.legend) > len(largest) {
			largest = p.legend
		}
		for _, e := range p.legend {
			look := e.look()
			if known, ok := looks[e.label]; ok && !bytes.Equal(known, look) {
				return
			}
			looks[e.label] = look
		}
	}
	if len(looks) == 0 || len(looks) > len(largest) {
		return
	}
	g.legend = &panel{legend: largest}
	for _, p := range all {
		p.legend = nil
	}
}

// look is a picture of the entry's icon.
func (e legendEntry) look() []byte {
	canvas := vgsvg.New(lineIcon, legendLine)
	for _, m := range e.marks {
		m.icon(e.icon(canvas, vg.Point{Y: legendLine / 2}))
	}
	var out bytes.Buffer
	canvas.WriteTo(&out) //nolint:errcheck // a buffer takes all
	return out.Bytes()
}

// shareAxes gives the axes one range.
func shareAxes(all []*panel, name string, of func(*axes) *axis) error {
	for i, p := range all {
		if len(p.axes) != 1 {
			return fmt.Errorf("viz: %s: figure %d of the grid has %d axes above each other: it takes figures of one", name, i,
				len(p.axes))
		}
		a, first := of(p.axes[0]), of(all[0].axes[0])
		if !slices.Equal(a.names, first.names) {
			return fmt.Errorf("viz: %s: figure %d of the grid has other names on its axis than figure 0", name, i)
		}
		if a.log != first.log || a.label != first.label {
			return fmt.Errorf("viz: %s: figure %d of the grid has the axis %q, and figure 0 %q: they must be the same, and "+
				"both logarithmic or neither", name, i, a.label, first.label)
		}
	}
	union := func(without int) span {
		s := span{math.Inf(1), math.Inf(-1)}
		for i, p := range all {
			if a := of(p.axes[0]); i != without {
				s.lo, s.hi = min(s.lo, a.lo), max(s.hi, a.hi)
			}
		}
		return s
	}
	shared := union(-1)
	for i, p := range all {
		own, others := p.axes[0].y, union(i)
		if name == "SharedY" && len(all) > 2 && !own.log && own.hi-own.lo > 2*(others.hi-others.lo) {
			shared = others
			p.notes = append(slices.Clone(p.notes), fmt.Sprintf("cut off: alone its axis is from %s to %s", number(own.lo),
				number(own.hi)))
		}
	}
	for _, p := range all {
		of(p.axes[0]).span = shared
	}
	return nil
}

const nameLine = labelSize * 1.6 // of a row's or a column's name

// header is the shared legend and the columns' names.
func (g *grid) header(width vg.Length) (h vg.Length) {
	if g.legend != nil {
		h = g.legend.header(width)
	}
	if g.columnNames != nil {
		h += nameLine
	}
	return h
}

// room returns the least height of the rows.
func (g *grid) room() (h vg.Length) {
	h = vg.Length(g.rows()-1) * 2 * margin
	headers, rooms := g.headers(points(cellWidth)/vg.Length(g.cols)-2*margin), g.largest(body.room)
	for row := range headers {
		h += headers[row] + rooms[row]
	}
	return h
}

func (g *grid) margins(vg.Point) margins { return margins{} }

// headers returns the largest header of each row, for cells of the given width.
func (g *grid) headers(width vg.Length) []vg.Length {
	return g.largest(func(b body) vg.Length { return b.header(width) })
}

// largest returns the largest length of each row's cells.
func (g *grid) largest(of func(body) vg.Length) []vg.Length {
	all := make([]vg.Length, g.rows())
	for i, cell := range g.cells {
		all[i/g.cols] = max(all[i/g.cols], of(cell))
	}
	return all
}

// draw gives all data areas one size: a cell has beside it what the numbers and labels of its row and column need.
func (g *grid) draw(c draw.Canvas, in inset) {
	area := draw.Crop(c, 0, 0, 0, -in.header)
	if g.rowNames != nil {
		area.Min.X += nameLine
	}
	if g.bar != "" {
		area.Max.X -= barWidth
	}
	rows, gap := g.rows(), 2*margin
	each := func(length vg.Length, cells int) vg.Length { return (length+gap)/vg.Length(cells) - gap }
	data := vg.Point{X: each(area.Size().X, g.cols), Y: each(area.Size().Y, rows)} // first with what is beside it
	size := data
	for _, h := range g.headers(size.X) {
		size.Y -= h / vg.Length(rows)
	}
	columns, lines := make([]margins, g.cols), make([]margins, rows)
	for i, cell := range g.cells {
		m := cell.margins(size)
		columns[i%g.cols], lines[i/g.cols] = m.union(columns[i%g.cols]), m.union(lines[i/g.cols])
	}
	narrowest := columns[0].left + columns[0].right
	for _, m := range columns {
		data.X -= (m.left + m.right) / vg.Length(g.cols)
		narrowest = min(narrowest, m.left+m.right)
	}
	headers := g.headers(data.X + narrowest)
	for row, m := range lines {
		data.Y -= (headers[row] + m.top + m.bottom) / vg.Length(rows)
	}
	top := area.Max.Y
	for row, line := range lines {
		low := top - headers[row] - line.top - data.Y - line.bottom
		x := area.Min.X
		for col, column := range columns[:min(g.cols, len(g.cells)-row*g.cols)] {
			cell := c
			cell.Min, cell.Max = vg.Point{X: x, Y: low}, vg.Point{X: x + column.left + data.X + column.right, Y: top}
			g.cells[row*g.cols+col].draw(cell, inset{headers[row],
				margins{column.left, column.right, line.bottom, line.top}, size})
			if row == 0 && g.columnNames != nil {
				at := vg.Point{X: x + column.left + data.X/2, Y: top + nameLine/2}
				c.FillText(textStyle(labelSize, black), at, g.columnNames[col])
			}
			x = cell.Max.X + gap
		}
		if g.rowNames != nil {
			style := textStyle(labelSize, black)
			style.Rotation = math.Pi / 2
			c.FillText(style, vg.Point{X: c.Min.X + nameLine/2, Y: low + line.bottom + data.Y/2}, g.rowNames[row])
		}
		top = low - gap
	}
	if g.bar != "" {
		bar := c
		bar.Min.Y, bar.Max.Y = area.Min.Y+lines[rows-1].bottom, area.Max.Y-headers[0]-lines[0].top
		drawBar(bar, area.Max.X, g.bar)
	}
	if g.legend != nil {
		g.legend.drawHeader(c)
	}
}

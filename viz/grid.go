package viz

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
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
	// SharedX and SharedY give all figures one range of the axis, with numbers and label at the outer figures only. Where
	// one of three or more would squeeze all others into less than half of the height, it is cut to their range, and says
	// so.
	SharedX, SharedY bool
}

// Grid puts figures side by side, row by row, with their axes aligned. A legend or a colour bar that all of them have
// is drawn once: legends are merged if a name has the same look in all figures and one of them has all names.
func Grid(opt GridOptions, figures ...*Figure) (*Figure, error) {
	if len(figures) == 0 || opt.Columns < 0 {
		return nil, fmt.Errorf("viz: grid of %d figures in %d columns: there must be a figure, and no negative number of "+
			"columns (0: as many as fit)", len(figures), opt.Columns)
	}
	g := &grid{}
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
	if err := g.named(opt); err != nil {
		return nil, err
	}
	if cell := cellWidth / g.cols; cell < width { // narrower, and a little lower
		lowest := .75
		if cell < minPixels {
			lowest = .6
		}
		height = int(float64(height) * max(lowest, float64(cell)/float64(width)))
		width = cell
	}
	before := g.headers(points(width))
	if err := g.share(opt); err != nil {
		return nil, err
	}
	rows := g.rows()
	total := vg.Length(rows)*points(height) - sum(before) + sum(g.headers(points(width)))
	total += g.header(points(g.cols * width))
	if need := g.header(points(g.cols*width)) + g.room() + 2*margin; total < need {
		total = need
	}
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
	bar                   *colourBar
	rowNames, columnNames []string
}

var _ body = (*grid)(nil)

// named checks and keeps the names.
func (g *grid) named(opt GridOptions) error {
	rows := g.rows()
	if opt.ColumnNames != nil && len(opt.ColumnNames) != g.cols || opt.RowNames != nil && len(opt.RowNames) != rows {
		return fmt.Errorf("viz: grid of %d x %d figures, %d ColumnNames and %d RowNames: each column or row must have one; "+
			"there are as many columns as fit into %d pixels", rows, g.cols, len(opt.ColumnNames), len(opt.RowNames), cellWidth)
	}
	g.rowNames, g.columnNames = opt.RowNames, opt.ColumnNames
	return nil
}

func (g *grid) rows() int { return (len(g.cells) + g.cols - 1) / g.cols }

// panels puts copies in the place of the cells that are panels, and returns them.
func (g *grid) panels() []*panel {
	var all []*panel
	for i, c := range g.cells {
		p, ok := c.(*panel)
		if !ok {
			continue
		}
		own := *p
		own.axes = nil
		for _, a := range p.axes {
			axes := *a
			axes.plot = new(plot.Plot)
			*axes.plot = *a.plot
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
		g.shareBar(all)
	}
	if opt.SharedX {
		if err := shareAxes(all, "SharedX", func(a *axes) *plot.Axis { return &a.plot.X }); err != nil {
			return err
		}
		for i := range all[:max(0, len(all)-g.cols)] {
			silence(&all[i].axes[0].plot.X)
		}
	}
	if opt.SharedY {
		if err := shareAxes(all, "SharedY", func(a *axes) *plot.Axis { return &a.plot.Y }); err != nil {
			return err
		}
		for i := range all {
			if i%g.cols > 0 {
				silence(&all[i].axes[0].plot.Y)
			}
		}
	}
	return nil
}

// shareLegend moves the legends into one, if a label looks the same in all of them and one of them has all labels.
func (g *grid) shareLegend(all []*panel) {
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
	icon := draw.New(canvas)
	for _, m := range e.marks {
		m.Thumbnail(&icon)
	}
	var out bytes.Buffer
	canvas.WriteTo(&out) //nolint:errcheck // a buffer takes all
	return out.Bytes()
}

// shareBar moves the colour bars to the grid's right if they are all the same.
func (g *grid) shareBar(all []*panel) {
	first := all[0].bar
	for _, p := range all {
		if first == nil || p.bar == nil || p.bar.label != first.label || p.bar.values != first.values ||
			*p.bar.table != *first.table || fmt.Sprint(p.bar.levels) != fmt.Sprint(first.levels) {
			return
		}
	}
	g.bar = first
	for _, p := range all {
		p.bar = nil
	}
}

// shareAxes gives the axes one range.
func shareAxes(all []*panel, name string, axis func(*axes) *plot.Axis) error {
	for i, p := range all {
		if len(p.axes) != 1 {
			return fmt.Errorf("viz: %s: figure %d of the grid has %d axes above each other: it takes figures of one", name, i,
				len(p.axes))
		}
		a, first := axis(p.axes[0]), axis(all[0].axes[0])
		switch a.Tick.Marker.(type) {
		case plot.DefaultTicks, niceTicks, wholeTicks, logTicks:
		default:
			return fmt.Errorf("viz: %s: figure %d of the grid has names on its axis, not numbers", name, i)
		}
		if fmt.Sprintf("%T", a.Scale) != fmt.Sprintf("%T", first.Scale) || a.Label.Text != first.Label.Text {
			return fmt.Errorf("viz: %s: figure %d of the grid has the axis %q, and figure 0 %q: they must be the same, and "+
				"both logarithmic or neither", name, i, a.Label.Text, first.Label.Text)
		}
	}
	union := func(without int) span {
		s := span{math.Inf(1), math.Inf(-1)}
		for i, p := range all {
			if a := axis(p.axes[0]); i != without {
				s.lo, s.hi = min(s.lo, a.Min), max(s.hi, a.Max)
			}
		}
		return s
	}
	shared := union(-1)
	_, log := axis(all[0].axes[0]).Scale.(plot.LogScale)
	for i, p := range all {
		own, others := p.axes[0].plot.Y, union(i)
		if name == "SharedY" && len(all) > 2 && !log && own.Max-own.Min > 2*(others.hi-others.lo) {
			shared = others
			p.notes = append(slices.Clone(p.notes), fmt.Sprintf("cut off: alone its axis is from %s to %s", number(own.Min),
				number(own.Max)))
		}
	}
	for _, p := range all {
		a := axis(p.axes[0])
		a.Min, a.Max = shared.lo, shared.hi
	}
	return nil
}

// silence takes the numbers and the label of an axis away; grid lines stay.
func silence(a *plot.Axis) {
	a.Label.Text = ""
	a.Tick.Marker = silent{a.Tick.Marker}
}

// silent makes ticks without numbers.
type silent struct{ plot.Ticker }

func (s silent) Ticks(lo, hi float64) []plot.Tick {
	ticks := slices.Clone(s.Ticker.Ticks(lo, hi))
	for i := range ticks {
		ticks[i].Label = ""
	}
	return ticks
}

func sum(lengths []vg.Length) (total vg.Length) {
	for _, l := range lengths {
		total += l
	}
	return total
}

const nameLine = labelSize * 1.6 // of a row's or a column's name

// header is the shared legend and the columns' names.
func (g *grid) header(width vg.Length) vg.Length {
	var h vg.Length
	if g.legend != nil {
		h += g.legend.header(width)
	}
	if g.columnNames != nil {
		h += nameLine
	}
	return h
}

// room returns the least height of the rows.
func (g *grid) room() vg.Length {
	h := vg.Length(g.rows()-1) * 2 * margin
	for row, header := range g.headers(points(cellWidth) / vg.Length(g.cols)) {
		h += header + g.rowMax(row, func(b body) vg.Length { return b.room() })
	}
	return h
}

func (g *grid) left(vg.Point) vg.Length   { return 0 }
func (g *grid) right(vg.Point) vg.Length  { return 0 }
func (g *grid) bottom(vg.Point) vg.Length { return 0 }
func (g *grid) top(vg.Point) vg.Length    { return 0 }

// headers returns the largest header of each row, for cells of the given width.
func (g *grid) headers(width vg.Length) []vg.Length {
	all := make([]vg.Length, g.rows())
	for row := range all {
		all[row] = g.rowMax(row, func(b body) vg.Length { return b.header(width - 2*margin) })
	}
	return all
}

func (g *grid) rowMax(row int, of func(body) vg.Length) (most vg.Length) {
	for _, c := range g.cells[row*g.cols : min(len(g.cells), (row+1)*g.cols)] {
		most = max(most, of(c))
	}
	return most
}

// draw gives all data areas one size: a cell has beside it what the numbers and labels of its row and column need.
func (g *grid) draw(c draw.Canvas, in inset) {
	area := draw.Crop(c, 0, 0, 0, -in.header)
	if g.rowNames != nil {
		area = draw.Crop(area, nameLine, 0, 0, 0)
	}
	if g.bar != nil {
		area = draw.Crop(area, 0, -g.bar.width(), 0, 0)
	}
	rows := g.rows()
	gap := 2 * margin
	size := vg.Point{X: (area.Size().X - gap*vg.Length(g.cols-1)) / vg.Length(g.cols),
		Y: (area.Size().Y - gap*vg.Length(rows-1)) / vg.Length(rows)}
	lefts, rights := make([]vg.Length, g.cols), make([]vg.Length, g.cols)
	bottoms, tops := make([]vg.Length, rows), make([]vg.Length, rows)
	for i, cell := range g.cells {
		tops[i/g.cols] = max(tops[i/g.cols], cell.top(size))
		lefts[i%g.cols] = max(lefts[i%g.cols], cell.left(size))
		rights[i%g.cols] = max(rights[i%g.cols], cell.right(size))
		bottoms[i/g.cols] = max(bottoms[i/g.cols], cell.bottom(size))
	}
	width := size.X - (sum(lefts)+sum(rights))/vg.Length(g.cols) // of the data
	narrowest := lefts[0] + rights[0]                            // beside the data
	for col := range lefts {
		narrowest = min(narrowest, lefts[col]+rights[col])
	}
	headers := g.headers(width + narrowest + 2*margin)
	height := size.Y - (sum(headers)+sum(bottoms))/vg.Length(rows)

	var title vg.Length = titleSize // all titles have the size of the longest one's
	for i, cell := range g.cells {
		if p, ok := cell.(*panel); ok {
			title = min(title, p.titleFont(lefts[i%g.cols]+width+rights[i%g.cols]))
		}
	}
	top := area.Max.Y
	var last draw.Canvas
	for row := range rows {
		low := top - headers[row] - height - bottoms[row]
		x := area.Min.X
		for col := range min(g.cols, len(g.cells)-row*g.cols) {
			cell := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
				Min: vg.Point{X: x, Y: low}, Max: vg.Point{X: x + lefts[col] + width + rights[col], Y: top},
			}}
			g.cells[row*g.cols+col].draw(cell, inset{headers[row], lefts[col], rights[col], bottoms[row], tops[row], title})
			if row == 0 && g.columnNames != nil {
				at := vg.Point{X: x + lefts[col] + width/2, Y: top + nameLine/2}
				c.FillText(textStyle(labelSize, black), at, g.columnNames[col])
			}
			x += lefts[col] + width + rights[col] + gap
			last = cell
		}
		if g.rowNames != nil {
			sty := textStyle(labelSize, black)
			sty.Rotation = math.Pi / 2
			c.FillText(sty, vg.Point{X: c.Min.X + nameLine/2, Y: low + bottoms[row] + height/2}, g.rowNames[row])
		}
		top = low - gap
	}
	if g.bar != nil {
		bar := draw.Canvas{Canvas: c.Canvas, Rectangle: area.Rectangle}
		bar.Min.X, bar.Max.X = area.Max.X, c.Max.X
		bar.Min.Y, bar.Max.Y = last.Min.Y+bottoms[rows-1], area.Max.Y-headers[0]
		g.bar.draw(bar)
	}
	if g.legend != nil {
		g.legend.drawHeader(c, vg.Rectangle{Min: area.Min, Max: area.Max}, 0)
	}
}

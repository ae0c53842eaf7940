package viz

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Grid puts figures side by side, row by row, in cells of one size: the largest width and height among them, higher
// where legends need it. Fewer figures than cells leave the last cells empty. Titles and legends in a row take the same
// height, so that the axes line up.
func Grid(rows, cols int, figures ...*Figure) (*Figure, error) {
	if rows < 1 || cols < 1 {
		return nil, fmt.Errorf("viz: grid of %d x %d cells: both must be at least 1", rows, cols)
	}
	if len(figures) == 0 || len(figures) > rows*cols {
		return nil, fmt.Errorf("viz: %d figures do not fit a grid of %d x %d cells", len(figures), rows, cols)
	}
	g := &grid{rows: rows, cols: cols}
	var width, height int
	for i, f := range figures {
		if f == nil || f.body == nil {
			return nil, fmt.Errorf("viz: figure %d of the grid is nil or empty: check the error of the function that made it", i)
		}
		width, height = max(width, f.width), max(height, f.height)
		g.cells = append(g.cells, f.body)
	}
	// A neighbour's long legend may need more than the highest of the figures has.
	for row := range rows {
		header, room := g.rowNeeds(row, func(int) vg.Length { return points(width) - 2*margin })
		need := header + room + 2*margin
		height = max(height, int(math.Ceil(float64(need/vg.Inch*pixelsPerInch))))
		g.needed += need
	}
	width, height = width*cols, height*rows
	if width > maxPixels || height > maxPixels {
		return nil, fmt.Errorf("viz: grid of %d x %d pixels: at most %d each way: make the figures smaller by Frame.Width "+
			"and Frame.Height", width, height, maxPixels)
	}
	return &Figure{width: width, height: height, body: g}, nil
}

type grid struct {
	rows, cols int
	cells      []body
	needed     vg.Length // height of all rows
}

var _ body = (*grid)(nil)

func (g *grid) header(vg.Length) vg.Length { return 0 }

func (g *grid) room() vg.Length { return g.needed }

// row gives the cells of one row; the last rows may be short or empty.
func (g *grid) row(row int) []body {
	first := min(row*g.cols, len(g.cells))
	return g.cells[first:min(first+g.cols, len(g.cells))]
}

// rowNeeds gives the greatest header and room in a row whose columns have some widths.
func (g *grid) rowNeeds(row int, width func(col int) vg.Length) (header, room vg.Length) {
	for col, cell := range g.row(row) {
		header, room = max(header, cell.header(width(col))), max(room, cell.room())
	}
	return header, room
}

func (g *grid) draw(c draw.Canvas, _ vg.Length) {
	tiles := draw.Tiles{Rows: g.rows, Cols: g.cols, PadX: 2 * margin, PadY: 2 * margin}
	for row := range g.rows {
		header, _ := g.rowNeeds(row, func(col int) vg.Length { return tiles.At(c, col, row).Size().X })
		for col, cell := range g.row(row) {
			cell.draw(tiles.At(c, col, row), header)
		}
	}
}

package viz

import (
	"fmt"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Grid puts figures side by side, row by row, in cells of one size: the largest width and height among them. Fewer figures
// than cells leave the last cells empty. Titles and legends in a row take the same height, so that the axes line up.
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
		if f == nil {
			return nil, fmt.Errorf("viz: figure %d of the grid is nil: check the error of the function that made it", i)
		}
		width, height = max(width, f.width), max(height, f.height)
		g.cells = append(g.cells, f.body)
	}
	width, height = width*cols, height*rows
	if width > maxPixels || height > maxPixels {
		return nil, fmt.Errorf("viz: grid of %d x %d pixels: at most %d each way: make the figures smaller by Frame.Width and Frame.Height", width, height, maxPixels)
	}
	return &Figure{width: width, height: height, body: g}, nil
}

type grid struct {
	rows, cols int
	cells      []body
}

var _ body = (*grid)(nil)

func (g *grid) header(vg.Length) vg.Length { return 0 }

func (g *grid) draw(c draw.Canvas, _ vg.Length) {
	tiles := draw.Tiles{Rows: g.rows, Cols: g.cols, PadX: 2 * margin, PadY: 2 * margin}
	for row := range g.rows {
		first := min(row*g.cols, len(g.cells))
		cells := g.cells[first:min(first+g.cols, len(g.cells))]
		var header vg.Length
		for col, cell := range cells {
			tile := tiles.At(c, col, row)
			header = max(header, cell.header(tile.Size().X))
		}
		for col, cell := range cells {
			cell.draw(tiles.At(c, col, row), header)
		}
	}
}

package viz

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	pixelsPerInch = 96 // CSS pixels
	pixelRatio    = 2  // pixels of a PNG for each CSS pixel: 192 dpi
	minPixels     = 240
	maxPixels     = 8000
)

// Frame has the options that all figures share. Empty fields take the figure's defaults.
type Frame struct {
	Title, XLabel, YLabel string
	// Width and Height in CSS pixels, 96 an inch, 240 to 8000; 0 is the figure's default (about 640 x 420). A notebook's
	// cell has room for 830, a journal's column of 3.5 inches for 336 and its page for 672: make a figure as wide as it
	// will be printed, and save it as .pdf. Text has 9 to 12 points. A PNG has twice as many pixels in each direction.
	Width, Height int
}

// fill gives the frame with defaults in place of empty fields.
func (f Frame) fill(title, xLabel, yLabel string, width, height int) (Frame, error) {
	f.Title, f.XLabel, f.YLabel = cmp.Or(f.Title, title), cmp.Or(f.XLabel, xLabel), cmp.Or(f.YLabel, yLabel)
	f.Width, f.Height = cmp.Or(f.Width, width), cmp.Or(f.Height, height)
	if f.Width < minPixels || f.Height < minPixels || f.Width > maxPixels || f.Height > maxPixels {
		return f, fmt.Errorf("viz: figure of %d x %d pixels: width and height must be within %d and %d",
			f.Width, f.Height, minPixels, maxPixels)
	}
	return f, nil
}

// body draws a figure's content.
type body interface {
	header(width vg.Length) vg.Length // the height of title and legend
	room() vg.Length                  // the least height below the header
	margins(size vg.Point) margins    // beside the data, in a cell of that size
	draw(c draw.Canvas, in inset)
}

// inset is how a body stands in its cell: the height of the header and the margins of the data area, at least its own,
// so that neighbours in a grid are in line, and the size, without header, for which axes have their ticks.
type inset struct {
	header vg.Length
	margins
	size vg.Point
}

// Figure is a finished plot, or a grid of plots. It holds a copy of its data; the same figure gives the same bytes each
// time.
type Figure struct {
	width, height int // CSS pixels
	body          body
}

func newFigure(f Frame, b body) (*Figure, error) {
	if need := b.header(points(f.Width)-2*margin) + b.room() + 2*margin; need > points(f.Height) {
		return nil, fmt.Errorf("viz: figure of %d x %d pixels: its title, legend and axes need a height of %d: set "+
			"Frame.Height or Frame.Width", f.Width, f.Height, int(math.Ceil(float64(need/vg.Inch*pixelsPerInch))))
	}
	return &Figure{width: f.Width, height: f.Height, body: b}, nil
}

// size is the size of the canvas.
func (f *Figure) size() (w, h vg.Length) { return points(f.width), points(f.height) }

func points(pixels int) vg.Length { return vg.Length(pixels) * vg.Inch / pixelsPerInch }

// margin is the white border of a figure and half the space between the cells of a grid.
const margin vg.Length = 6

// render draws on a white ground.
func (f *Figure) render(canvas vg.Canvas) {
	w, h := f.size()
	c := draw.NewCanvas(canvas, w, h)
	c.SetColor(white)
	c.Fill(c.Rectangle.Path())
	inner := draw.Crop(c, margin, -margin, margin, -margin)
	(&grid{cols: 1, cells: []body{f.body}}).draw(inner, inset{})
}

// check returns an error for a nil or empty figure, as of a failed call whose error was ignored.
func (f *Figure) check() error {
	if f == nil || f.body == nil {
		return errors.New("viz: the figure is nil or empty: check the error of the function that made it")
	}
	return nil
}

// PNG renders the figure at 192 dots per inch, twice the CSS pixels of its size.
func (f *Figure) PNG() ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, f.picture()); err != nil {
		return nil, fmt.Errorf("viz: encoding PNG: %w", err)
	}
	return buf.Bytes(), nil
}

// picture is the figure at 192 dots per inch.
func (f *Figure) picture() image.Image {
	canvas := vgimg.NewWith(vgimg.UseWH(f.size()), vgimg.UseDPI(pixelRatio*pixelsPerInch))
	f.render(canvas)
	return canvas.Image()
}

// SVG renders the figure as SVG. Text stays text, in Liberation Sans or what the viewer has of the same widths (Arial,
// Helvetica).
func (f *Figure) SVG() ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	var drawn bytes.Buffer
	canvas := vgsvg.New(f.size())
	f.render(canvas)
	if _, err := canvas.WriteTo(&drawn); err != nil {
		return nil, fmt.Errorf("viz: encoding SVG: %w", err)
	}
	return []byte(svgFixes.Replace(drawn.String())), nil
}

// svgFixes names fonts to fall back on, the true type of embedded images, and that they fill what they are given.
var svgFixes = strings.NewReplacer(
	"<image ", `<image preserveAspectRatio="none" `,
	"font-family:Liberation Sans;font-variant:normal", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif",
	"data:image/jpg;base64,", "data:image/png;base64,",
)

// Save writes the figure to a file, .png, .svg or .pdf by the path's extension. The file appears whole or not at all:
// an existing one is replaced in one step, and left as it was if anything fails.
func (f *Figure) Save(path string) error {
	var encode func() ([]byte, error)
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".png":
		encode = f.PNG
	case ".svg":
		encode = f.SVG
	case ".pdf":
		encode = f.pdf
	default:
		return fmt.Errorf("viz: cannot save %q: extension %q is unknown: use .png, .svg or .pdf", path, ext)
	}
	data, err := encode()
	if err != nil {
		return err
	}
	folder := filepath.Dir(path) // also of the temporary file: only there is renaming it one step
	if err := renameio.WriteFile(path, data, 0o644, renameio.WithTempDir(folder)); err != nil {
		return fmt.Errorf("viz: cannot save %q: folder %q must exist and be writable, and its disk have room: %w", path,
			folder, err)
	}
	return nil
}

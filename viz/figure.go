package viz

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"github.com/google/renameio/v2"
	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	pixelsPerInch = 96 // CSS pixels
	pixelRatio    = 2  // pixels of a PNG for each CSS pixel: 192 dpi
	minPixels     = 240
	maxPixels     = 8000
)

// errNotNotebook is returned by Figure.Show in a program that does not run in a GoNB notebook.
var errNotNotebook = errors.New("viz: this program does not run in a GoNB notebook: use Save(\"figure.png\"), " +
	"Save(\"figure.svg\") or Save(\"figure.pdf\")")

// Frame has the options that all figures share. Empty fields take the figure's defaults.
type Frame struct {
	Title, XLabel, YLabel string
	// Width and Height in CSS pixels, 96 an inch, 240 to 8000; 0 is the figure's default (about 640 x 420). A notebook's
	// cell has room for 830, a journal's column of 3.5 inches for 336 and its page for 672: make a figure as wide as it
	// will be printed, and save it as .pdf. Text has 9 to 12 points. A PNG has twice as many pixels in each
	// direction.
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

// encoded returns what write makes of the figure.
func (f *Figure) encoded(format string, write func(to io.Writer) error) ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	if err := write(&buf); err != nil {
		return nil, fmt.Errorf("viz: encoding %s: %w", format, err)
	}
	return buf.Bytes(), nil
}

// PNG renders the figure at 192 dots per inch, twice the CSS pixels of its size.
func (f *Figure) PNG() ([]byte, error) {
	return f.encoded("PNG", func(to io.Writer) error { return png.Encode(to, f.picture()) })
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
	return f.encoded("SVG", func(to io.Writer) error {
		var drawn bytes.Buffer
		canvas := vgsvg.New(f.size())
		f.render(canvas)
		if _, err := canvas.WriteTo(&drawn); err != nil {
			return err
		}
		_, err := svgFixes.WriteString(to, drawn.String())
		return err
	})
}

// svgFixes names fonts to fall back on, the true type of embedded images, and that they fill what they are given.
var svgFixes = strings.NewReplacer(
	"<image ", `<image preserveAspectRatio="none" `,
	"font-family:Liberation Sans;font-variant:normal", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif",
	"data:image/jpg;base64,", "data:image/png;base64,",
)

// fixedDates gives PDF files the same dates and order each time, since the library writes when they were made.
var fixedDates = sync.OnceFunc(func() {
	fpdf.SetDefaultCreationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultCatalogSort(true)
})

// pdf renders the figure as one page of its size, with its fonts embedded. Non-ASCII letters are drawn, but cannot be
// searched for.
func (f *Figure) pdf() ([]byte, error) {
	return f.encoded("PDF", func(to io.Writer) error {
		fixedDates()
		canvas := pdfCanvas{vgpdf.New(f.size())}
		f.render(canvas)
		_, err := canvas.WriteTo(to)
		return err
	})
}

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

// Show displays the figure as a PNG in the running cell of a GoNB notebook, at its size in CSS pixels. To keep the
// notebook's file small, it has at most 256 colours, and at most 1660 pixels across, or one per CSS pixel if the figure
// is wider. An SVG would often be smaller, but JupyterLab shows no SVG in a notebook that it does not trust, such as
// one that somebody else has executed. [Figure.Save] writes SVG. Outside a notebook Show returns an error.
func (f *Figure) Show() error {
	if !gonbui.IsNotebook {
		return errNotNotebook
	}
	if err := f.check(); err != nil {
		return err
	}
	return show(f.picture(), image.Pt(f.width, f.height))
}

// ShowFile displays a PNG written by [Figure.Save] as Show would.
func ShowFile(path string) error {
	if !gonbui.IsNotebook {
		return errNotNotebook
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("viz: %w", err)
	}
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("viz: %s is no PNG: %w", path, err)
	}
	return show(picture, picture.Bounds().Size().Div(pixelRatio))
}

// show displays a picture at its size in CSS pixels.
func show(picture image.Image, size image.Point) error {
	data, err := inNotebook(picture, size)
	if err != nil {
		return err
	}
	// As gonbui.DisplayPng does, but with the size, without which a front-end shows the picture twice too large.
	gonbui.SendData(&protocol.DisplayData{
		Data: map[protocol.MIMEType]any{protocol.MIMEImagePNG: data},
		Metadata: map[string]any{
			string(protocol.MIMEImagePNG): map[string]int{"width": size.X, "height": size.Y},
		},
	})
	if err := syncNotebook(); err != nil {
		return fmt.Errorf("viz: sending the figure to the notebook: %w", err)
	}
	return nil
}

const syncTimeout = 30 * time.Second

// syncNotebook waits until the kernel has read what was sent: the cell's program may end before the picture has left
// it. gonbui.Sync itself waits forever for a kernel that is gone.
func syncNotebook() error {
	if err := gonbui.Error(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		gonbui.Sync()
		close(done)
	}()
	select {
	case <-done:
		return gonbui.Error()
	case <-time.After(syncTimeout):
		return fmt.Errorf("the kernel has not answered for %v", syncTimeout)
	}
}

// Markdown displays text in the running cell of a GoNB notebook, as figures' Show does: a table of scores, for
// instance. Anywhere else it returns an error.
func Markdown(text string) error {
	if !gonbui.IsNotebook {
		return errNotNotebook
	}
	gonbui.DisplayMarkdown(text)
	gonbui.Sync()
	return gonbui.Error()
}

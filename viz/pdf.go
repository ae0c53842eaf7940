package viz

import (
	"bytes"
	"fmt"
	"image"
	"sync"
	"time"
	"unicode/utf8"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	gonumfont "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgpdf"
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
	if err := f.check(); err != nil {
		return nil, err
	}
	fixedDates()
	canvas := pdfCanvas{vgpdf.New(f.size())}
	f.render(canvas)
	var drawn bytes.Buffer
	if _, err := canvas.WriteTo(&drawn); err != nil {
		return nil, fmt.Errorf("viz: encoding PDF: %w", err)
	}
	return drawn.Bytes(), nil
}

// pdfCanvas is gonum's PDF canvas with two of its faults corrected: it draws pictures upside down; and it draws other
// letters for those that are not ASCII, such as a minus sign or a Greek letter, since its fonts have only 256.
type pdfCanvas struct{ *vgpdf.Canvas }

var _ vg.Canvas = pdfCanvas{}

// DrawImage draws a picture upright: the canvas has the origin of its library, at the upper left, turned over.
func (c pdfCanvas) DrawImage(rect vg.Rectangle, picture image.Image) {
	c.Push()
	defer c.Pop()
	c.Translate(vg.Point{X: rect.Min.X, Y: rect.Max.Y})
	c.Scale(1, -1)
	c.Canvas.DrawImage(vg.Rectangle{Max: rect.Size()}, picture)
}

// FillString writes ASCII as text, which can be searched and copied, and draws the outlines of other letters.
func (c pdfCanvas) FillString(face gonumfont.Face, at vg.Point, text string) {
	for rest := text; rest != ""; {
		n := 0
		ascii := rest[0] < utf8.RuneSelf
		for n < len(rest) && rest[n] < utf8.RuneSelf == ascii {
			n++
		}
		run := rest[:n]
		start := vg.Point{X: at.X + face.Width(text[:len(text)-len(rest)]), Y: at.Y}
		if rest = rest[n:]; ascii {
			c.Canvas.FillString(face, start, run)
		} else {
			c.fillOutlines(face, start, run)
		}
	}
}

// fillOutlines draws letters by their outlines.
func (c pdfCanvas) fillOutlines(face gonumfont.Face, at vg.Point, text string) {
	var buffer sfnt.Buffer
	units := face.Face.UnitsPerEm()
	size := fixed.I(int(units)) // so that a number of an outline is one of the font's units
	scale := face.Font.Size / vg.Length(size)
	for _, letter := range text {
		glyph, err := face.Face.GlyphIndex(&buffer, letter)
		if err != nil {
			continue // as for the other canvases: there is nothing to draw
		}
		segments, err := face.Face.LoadGlyph(&buffer, glyph, size, nil)
		if err != nil {
			continue
		}
		point := func(p fixed.Point26_6) vg.Point { // fonts count downwards
			return vg.Point{X: at.X + vg.Length(p.X)*scale, Y: at.Y - vg.Length(p.Y)*scale}
		}
		var outline vg.Path
		for _, s := range segments {
			switch s.Op {
			case sfnt.SegmentOpMoveTo:
				outline.Move(point(s.Args[0]))
			case sfnt.SegmentOpLineTo:
				outline.Line(point(s.Args[0]))
			case sfnt.SegmentOpQuadTo:
				outline.QuadTo(point(s.Args[0]), point(s.Args[1]))
			case sfnt.SegmentOpCubeTo:
				outline.CubeTo(point(s.Args[0]), point(s.Args[1]), point(s.Args[2]))
			}
		}
		if len(outline) > 0 {
			outline.Close()
			c.Fill(outline)
		}
		if advance, err := face.Face.GlyphAdvance(&buffer, glyph, size, font.HintingNone); err == nil {
			at.X += vg.Length(advance) * scale
		}
	}
}

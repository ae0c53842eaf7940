package viz

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"time"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// errNotNotebook is returned by Figure.Show in a program that does not run in a GoNB notebook.
var errNotNotebook = errors.New("viz: this program does not run in a GoNB notebook: use Save(\"figure.png\") " +
	"or Save(\"figure.svg\")")

// Show displays the figure as a PNG in the running cell of a GoNB notebook, at its size in CSS pixels. To keep the
// notebook's file small, it has at most 256 colours. An SVG would often be smaller, but JupyterLab shows no SVG in a
// notebook that it does not trust, such as one that somebody else has executed. [Figure.Save] writes SVG. Outside a
// notebook Show returns an error.
func (f *Figure) Show() error {
	if !gonbui.IsNotebook {
		return errNotNotebook
	}
	if err := f.check(); err != nil {
		return err
	}
	return show(f.picture())
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
	return show(picture)
}

// show displays a picture at its size in CSS pixels.
func show(picture image.Image) error {
	var buf bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&buf, paletted(picture)); err != nil {
		return fmt.Errorf("viz: encoding PNG: %w", err)
	}
	size := picture.Bounds().Size().Div(pixelRatio)
	// As gonbui.DisplayPng does, but with the size, without which a front-end shows the picture twice too large.
	gonbui.SendData(&protocol.DisplayData{
		Data: map[protocol.MIMEType]any{protocol.MIMEImagePNG: buf.Bytes()},
		Metadata: map[string]any{
			string(protocol.MIMEImagePNG): map[string]int{"width": size.X, "height": size.Y},
		},
	})
	return syncNotebook()
}

const syncTimeout = 30 * time.Second

// syncNotebook waits until the kernel has read what was sent: the cell's program may end before it has left.
// gonbui.Sync itself waits forever for a kernel that is gone.
func syncNotebook() error {
	done := make(chan struct{})
	go func() {
		gonbui.Sync()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(syncTimeout):
		return fmt.Errorf("viz: the notebook's kernel has not answered for %v", syncTimeout)
	}
	if err := gonbui.Error(); err != nil {
		return fmt.Errorf("viz: sending to the notebook: %w", err)
	}
	return nil
}

// Markdown displays text in the running cell of a GoNB notebook, as figures' Show does: a table of scores, for
// instance. Anywhere else it returns an error.
func Markdown(text string) error {
	if !gonbui.IsNotebook {
		return errNotNotebook
	}
	gonbui.DisplayMarkdown(text)
	return syncNotebook()
}

// paletted is an opaque picture with at most 256 colours. Those of more than a thousandth of the pixels, such as areas,
// stay as they are; of the others those that agree in their highest bits, in as many as there can be, are drawn as the
// first of them.
func paletted(picture image.Image) *image.Paletted {
	bounds := picture.Bounds()
	rgba := image.NewRGBA(bounds)
	draw.Draw(rgba, bounds, picture, bounds.Min, draw.Src)
	out := image.NewPaletted(bounds, nil)
	pixels := map[[3]uint8]int{}
	for i := range out.Pix {
		pixels[[3]uint8(rgba.Pix[4*i:])]++
	}
	for shift := 0; ; shift++ {
		index := map[[4]uint8]uint8{}
		out.Palette = nil
		for i := range out.Pix {
			c := rgba.Pix[4*i : 4*i+3]
			if i > 0 && [3]uint8(c) == [3]uint8(rgba.Pix[4*i-4:]) { // most are like the one before
				out.Pix[i] = out.Pix[i-1]
				continue
			}
			key := [4]uint8{c[0] >> shift, c[1] >> shift, c[2] >> shift}
			if pixels[[3]uint8(c)] > len(out.Pix)/1000 {
				key = [4]uint8{c[0], c[1], c[2], 1}
			}
			if _, known := index[key]; !known {
				index[key] = uint8(len(index))
				out.Palette = append(out.Palette, rgb(uint32(c[0])<<16|uint32(c[1])<<8|uint32(c[2])))
			}
			out.Pix[i] = index[key]
			if len(index) > 256 {
				break
			}
		}
		if len(index) <= 256 {
			return out
		}
	}
}

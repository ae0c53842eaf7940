package viz

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"slices"

	xdraw "golang.org/x/image/draw"
)

// A notebook's file holds its pictures, so they are made small: the output of a cell is some 830 CSS pixels wide in
// JupyterLab on a screen of 1280, to which it scales wider ones, and 256 colours are enough for the eye. A file written
// by Save keeps all.
const (
	cellWidth  = 830
	maxColours = 256
)

// inNotebook is a picture as a notebook's PNG: with two pixels for each CSS pixel of its size up to the width of a
// column, beyond it with as many as a column has, and at least one; and with at most 256 colours.
func inNotebook(picture image.Image, size image.Point) ([]byte, error) {
	width := max(min(pixelRatio*size.X, pixelRatio*cellWidth), size.X)
	if width < picture.Bounds().Dx() {
		small := image.NewRGBA(image.Rect(0, 0, width, max(1, (size.Y*width+size.X/2)/size.X)))
		xdraw.CatmullRom.Scale(small, small.Bounds(), picture, picture.Bounds(), xdraw.Src, nil)
		picture = small
	}
	var buf bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&buf, paletted(picture)); err != nil {
		return nil, fmt.Errorf("viz: encoding PNG: %w", err)
	}
	return buf.Bytes(), nil
}

// shade is a colour of a picture, and the number of pixels that have it.
type shade struct {
	rgb   [3]uint8
	count int
}

// paletted is an opaque picture with at most 256 colours: its own where it has no more, else one for each box of
// similar colours, the mean over its pixels. The box with the largest sum of squares within it is cut in two at its
// mean, across its widest channel, until there are enough (Heckbert 1982, "Color Image Quantization for Frame Buffer
// Display", with Wu's criterion of variance).
func paletted(picture image.Image) *image.Paletted {
	bounds := picture.Bounds()
	rgba := image.NewRGBA(bounds)
	draw.Draw(rgba, bounds, picture, bounds.Min, draw.Src)
	counts := map[[3]uint8]int{}
	for i := 0; i < len(rgba.Pix); i += 4 {
		counts[[3]uint8(rgba.Pix[i:i+3])]++
	}
	shades := make([]shade, 0, len(counts))
	for c, n := range counts {
		shades = append(shades, shade{c, n})
	}
	slices.SortFunc(shades, func(a, b shade) int { return slices.Compare(a.rgb[:], b.rgb[:]) }) // the same bytes each time

	boxes := []box{newBox(shades)}
	for len(boxes) < maxColours {
		k := 0
		for i := range boxes {
			if boxes[i].spread > boxes[k].spread {
				k = i
			}
		}
		if boxes[k].spread <= 0 {
			break
		}
		lower, upper := boxes[k].cut()
		boxes[k] = lower
		boxes = append(boxes, upper)
	}
	palette := make(color.Palette, len(boxes))
	index := make(map[[3]uint8]uint8, len(shades))
	for i, b := range boxes {
		palette[i] = color.RGBA{round(b.mean[0]), round(b.mean[1]), round(b.mean[2]), 255}
		for _, s := range b.shades {
			index[s.rgb] = uint8(i)
		}
	}
	out := image.NewPaletted(bounds, palette)
	for i := range out.Pix {
		out.Pix[i] = index[[3]uint8(rgba.Pix[4*i:4*i+3])]
	}
	return out
}

func round(v float64) uint8 { return uint8(v + .5) }

// box is a group of shades with their mean over pixels, the channel in which they differ most, and the sum of squares
// about the mean in it.
type box struct {
	shades  []shade
	mean    [3]float64
	channel int
	spread  float64
}

func newBox(shades []shade) box {
	b := box{shades: shades}
	pixels := 0.
	for _, s := range shades {
		pixels += float64(s.count)
		for k, v := range s.rgb {
			b.mean[k] += float64(s.count) * float64(v)
		}
	}
	for k := range b.mean {
		b.mean[k] /= pixels
	}
	for k := range b.mean {
		sum := 0.
		if !slices.ContainsFunc(shades, func(s shade) bool { return s.rgb[k] != shades[0].rgb[k] }) {
			continue
		}
		for _, s := range shades {
			d := float64(s.rgb[k]) - b.mean[k]
			sum += float64(s.count) * d * d
		}
		if sum > b.spread {
			b.channel, b.spread = k, sum
		}
	}
	return b
}

// cut divides a box whose spread is not 0, so that both parts have shades.
func (b box) cut() (lower, upper box) {
	k := b.channel
	slices.SortStableFunc(b.shades, func(x, y shade) int { return cmp.Compare(x.rgb[k], y.rgb[k]) })
	at := slices.IndexFunc(b.shades, func(s shade) bool { return float64(s.rgb[k]) > b.mean[k] })
	return newBox(b.shades[:at]), newBox(b.shades[at:])
}

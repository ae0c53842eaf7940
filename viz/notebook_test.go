package viz

import (
	"image"
	"image/color"
	"testing"
)

// A picture of few colours keeps them; with more than 256 each pixel stays close to its own.
func TestPaletted(t *testing.T) {
	for _, c := range []struct{ shades, off, most int }{{16, 0, 16}, {256, 15, 256}} {
		picture := image.NewRGBA(image.Rect(0, 0, 256, 256))
		shade := func(i int) uint8 { return uint8(i * c.shades / 256 * (256 / c.shades)) }
		for x := range 256 {
			for y := range 256 {
				picture.Set(x, y, color.RGBA{shade(x), shade(y) * uint8(c.shades/256), 128, 255})
			}
		}
		small := paletted(picture)
		if n := len(small.Palette); n != c.most {
			t.Errorf("%d colours, want %d", n, c.most)
		}
		for x := range 256 {
			for y := range 256 {
				got, want := color.RGBAModel.Convert(small.At(x, y)).(color.RGBA), picture.RGBAAt(x, y)
				if off := max(apart(got.R, want.R), apart(got.G, want.G), apart(got.B, want.B)); off > c.off {
					t.Fatalf("at %d, %d: %v, off by %d", x, y, got, off)
				}
			}
		}
	}
}

// An area keeps its colour beside many others that are near.
func TestPalettedAreas(t *testing.T) {
	picture := image.NewRGBA(image.Rect(0, 0, 256, 256))
	for x := range 256 {
		for y := range 256 {
			c := color.RGBA{uint8(x), uint8(y), 128, 255}
			if y < 9 {
				c = color.RGBA{255 - 20*uint8(x%2), 255, 255, 255}
			}
			picture.Set(x, y, c)
		}
	}
	small := paletted(picture)
	for x, want := range []uint8{255, 235} {
		if got := color.RGBAModel.Convert(small.At(x, 0)).(color.RGBA).R; got != want {
			t.Errorf("the red of an area is %d, want %d", got, want)
		}
	}
}

func apart(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }

package viz

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"

	"gobnn/bayes/compute/computetest"
)

// halves is a picture of a red and a blue half.
func halves(width, height int) *image.RGBA {
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for x := range width {
		for y := range height {
			c := color.RGBA{255, 0, 0, 255}
			if x >= width/2 {
				c = color.RGBA{0, 0, 255, 255}
			}
			picture.Set(x, y, c)
		}
	}
	return picture
}

func decoded(t *testing.T, picture image.Image, size image.Point) image.Image {
	t.Helper()
	data := computetest.Must(inNotebook(picture, size))
	small := computetest.Must(png.Decode(bytes.NewReader(data)))
	return small
}

// A picture keeps its pixels up to the width of a column, then it has as many as a column, and never less than one for
// each CSS pixel; few colours are kept as they are.
func TestInNotebook(t *testing.T) {
	for _, c := range []struct{ width, want int }{{400, 800}, {830, 1660}, {1000, 1660}, {1660, 1660}, {2000, 2000}} {
		small := decoded(t, halves(2*c.width, 200), image.Pt(c.width, 100))
		if got, want := small.Bounds().Size(), image.Pt(c.want, (100*c.want+c.width/2)/c.width); got != want {
			t.Errorf("%d CSS pixels wide: %v, want %v", c.width, got, want)
		}
		for at, want := range map[int]color.RGBA{10: {255, 0, 0, 255}, c.want - 10: {0, 0, 255, 255}} {
			if got := color.RGBAModel.Convert(small.At(at, 50)); got != want {
				t.Errorf("%d CSS pixels wide, at %d: %v, want %v", c.width, at, got, want)
			}
		}
	}
}

// With more than 256 colours each pixel of a smooth picture stays close to its own. 65536 evenly spread colours of two
// channels in 256 boxes of 16 x 16 are off by at most 8.5 in each, and cuts at the mean make such boxes.
func TestPaletted(t *testing.T) {
	picture := image.NewRGBA(image.Rect(0, 0, 256, 256))
	for x := range 256 {
		for y := range 256 {
			picture.Set(x, y, color.RGBA{uint8(x), uint8(y), 128, 255})
		}
	}
	small := paletted(picture)
	if n := len(small.Palette); n != maxColours {
		t.Errorf("%d colours, want %d", n, maxColours)
	}
	for x := range 256 {
		for y := range 256 {
			got := color.RGBAModel.Convert(small.At(x, y)).(color.RGBA)
			if off := max(apart(got.R, uint8(x)), apart(got.G, uint8(y)), apart(got.B, 128)); off > 9 {
				t.Fatalf("at %d, %d: %v, off by %d", x, y, got, off)
			}
		}
	}
}

func apart(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }

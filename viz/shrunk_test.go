package viz

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"
)

// A picture of two halves is as large as asked, and keeps them.
func TestShrunk(t *testing.T) {
	picture := image.NewRGBA(image.Rect(0, 0, 400, 200))
	for x := range 400 {
		for y := range 200 {
			c := color.RGBA{255, 0, 0, 255}
			if x >= 200 {
				c = color.RGBA{0, 0, 255, 255}
			}
			picture.Set(x, y, c)
		}
	}
	data, err := shrunk(picture, image.Pt(200, 100))
	if err != nil {
		t.Fatal(err)
	}
	small, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if size := small.Bounds().Size(); size != image.Pt(200, 100) {
		t.Fatalf("%v, want 200 x 100", size)
	}
	for x, want := range map[int]color.RGBA{10: {255, 0, 0, 255}, 190: {0, 0, 255, 255}} {
		if got := small.At(x, 50); got != want {
			t.Errorf("at %d: %v, want %v", x, got, want)
		}
	}
}

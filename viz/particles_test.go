package viz_test

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"
)

// Where a density is high it is seen between a thousand dots: it is blue, and they are orange.
func TestDotsLeaveDensity(t *testing.T) {
	fig, err := cloud(1000, false)
	if err != nil {
		t.Fatal(err)
	}
	data, err := fig.PNG()
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	size := picture.Bounds().Size()
	blue, all := 0, 0
	// The middle of the crescent, from -1 to 1 and -1.2 to -.6.
	at := func(x, y float64) image.Point {
		return image.Pt(int(float64(size.X)*(.09+.89*(x+4.4)/8.8)), int(float64(size.Y)*(.89-.70*(y+3.3)/11.8)))
	}
	low, high := at(-1, -.6), at(1, -1.2)
	for y := low.Y; y < high.Y; y++ {
		for x := low.X; x < high.X; x++ {
			r, _, b, _ := picture.At(x, y).RGBA()
			if all++; b > r {
				blue++
			}
		}
	}
	if share := float64(blue) / float64(all); all < 1000 || share < .3 {
		t.Errorf("the density is seen in a share of %.2f of %d pixels, want at least .3", share, all)
	}
}

// Pictures in an SVG fill the place that they are given: a colour bar is one pixel wide.
func TestPicturesFill(t *testing.T) {
	fig, err := decision()
	if err != nil {
		t.Fatal(err)
	}
	svg, err := fig.SVG()
	if err != nil {
		t.Fatal(err)
	}
	images := strings.Count(string(svg), "<image ")
	filling := strings.Count(string(svg), `<image preserveAspectRatio="none" `)
	if images != 2 || filling != images {
		t.Errorf("%d of %d pictures fill their places, want 2", filling, images)
	}
}

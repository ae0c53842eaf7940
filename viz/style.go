package viz

import (
	"image"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The colours of Okabe and Ito (2008), "Color Universal Design", which readers with any common colour blindness tell
// apart, less the yellow, which is too light for a line on white.
var (
	black      = rgb(0x000000)
	orange     = rgb(0xE69F00)
	skyBlue    = rgb(0x56B4E9)
	green      = rgb(0x009E73)
	blue       = rgb(0x0072B2)
	vermillion = rgb(0xD55E00)
	purple     = rgb(0xCC79A7)

	white    = rgb(0xFFFFFF)
	grey     = rgb(0x707070)
	gridGrey = rgb(0xE6E6E6)
)

// Dash patterns. A line differs from its neighbours by its pattern as well as by its colour.
var (
	dashed  = []vg.Length{6, 3}
	dotted  = []vg.Length{1.5, 2.5}
	dashDot = []vg.Length{7, 2.5, 1.5, 2.5}
)

func rgb(hex uint32) color.NRGBA {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 255}
}

// mix is between two colours: 0 is a, 1 is b.
func mix(a, b color.NRGBA, share float64) color.NRGBA {
	between := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + share*(float64(b)-float64(a)))) }
	return color.NRGBA{R: between(a.R, b.R), G: between(a.G, b.G), B: between(a.B, b.B), A: a.A}
}

// tint mixes c with white: 0 is c, 1 is white.
func tint(c color.NRGBA, amount float64) color.NRGBA { return mix(c, white, amount) }

func withAlpha(c color.NRGBA, alpha float64) color.NRGBA {
	c.A = uint8(math.Round(255 * alpha))
	return c
}

func stroke(c color.Color, width vg.Length, dashes ...vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: width, Dashes: dashes}
}

// Font sizes in points; a point is 4/3 CSS pixels.
const (
	titleSize  = 12
	labelSize  = 10.5
	tickSize   = 9.5
	legendSize = 9.5
	noteSize   = 9
	minSize    = 7.5 // text that does not fit its line shrinks down to this
)

func textStyle(size vg.Length, c color.Color) text.Style {
	return text.Style{
		Color:   c,
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size),
		XAlign:  draw.XCenter,
		YAlign:  draw.YCenter,
		Handler: plot.DefaultTextHandler,
	}
}

// colourTable holds the colours from 0 to 1.
type colourTable [255]color.NRGBA

// at is the colour of v in [0, 1].
func (t *colourTable) at(v float64) color.NRGBA {
	return t[int(math.Round(math.Min(math.Max(v, 0), 1)*float64(len(t)-1)))]
}

// picture shows the colours in a row, or upright from below.
func (t *colourTable) picture(upright bool) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, len(t), 1))
	if upright {
		img = image.NewNRGBA(image.Rect(0, 0, 1, len(t)))
	}
	for i, c := range t {
		if upright {
			img.Set(0, len(t)-1-i, c)
		} else {
			img.Set(i, 0, c)
		}
	}
	return img
}

// divergingColours run from blue over near-white to orange, which colour-blind readers tell apart; the light middle is
// where a classifier is undecided.
var divergingColours = ramp(rgb(0x2F7FBF), rgb(0x9CC3E3), rgb(0xF7F7F5), rgb(0xEFB985), rgb(0xD9771F))

// sequentialColours run from white to a middle blue; they stop before the dark blues so that marks stay visible.
var sequentialColours = ramp(white, rgb(0x8FBFE0), rgb(0x3C86BD))

// ramp goes through the colours at even steps.
func ramp(colours ...color.NRGBA) *colourTable {
	t := new(colourTable)
	for i := range t {
		at := float64(i) / float64(len(t)-1) * float64(len(colours)-1)
		k := min(int(at), len(colours)-2)
		t[i] = mix(colours[k], colours[k+1], at-float64(k))
	}
	return t
}

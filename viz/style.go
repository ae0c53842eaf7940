package viz

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/palette/moreland"
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

// tint mixes c with white: 0 is c, 1 is white.
func tint(c color.NRGBA, amount float64) color.NRGBA {
	mix := func(v uint8) uint8 { return uint8(math.Round(float64(v) + amount*(255-float64(v)))) }
	return color.NRGBA{R: mix(c.R), G: mix(c.G), B: mix(c.B), A: c.A}
}

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

// colourTable holds the colours from the least value to the greatest.
type colourTable [255]color.Color

// index gives the place of v in [0, 1].
func (t *colourTable) index(v float64) int {
	return int(math.Round(math.Min(math.Max(v, 0), 1) * float64(len(t)-1)))
}

// divergingColours run from blue over near-white to orange, each half even in CIELAB lightness (Moreland 2009,
// "Diverging Color Maps for Scientific Visualization"); colour-blind readers can tell blue from orange, and the light
// middle is where a classifier is undecided.
var divergingColours = func() *colourTable {
	low := tabulate(rgb(0x2F7FBF), rgb(0x9CC3E3), rgb(0xF7F7F5))
	high := tabulate(rgb(0xD9771F), rgb(0xEFB985), rgb(0xF7F7F5))
	t := new(colourTable)
	for i := range t {
		if k := 2 * i; k < len(t) {
			t[i] = low[k]
		} else {
			t[i] = high[2*(len(t)-1)-k]
		}
	}
	return t
}()

// sequentialColours run from white to a middle blue, even in CIELAB lightness; they stop before the dark blues so that
// marks stay visible on them.
var sequentialColours = func() *colourTable {
	t := tabulate(rgb(0x3C86BD), rgb(0x8FBFE0), rgb(0xFFFFFF))
	slices.Reverse(t[:])
	return t
}()

// tabulate interpolates between colours of growing lightness. It panics where they are not.
func tabulate(controls ...color.Color) *colourTable {
	m, err := moreland.NewLuminance(controls)
	if err != nil {
		panic(err)
	}
	m.SetMin(0)
	m.SetMax(1)
	t := new(colourTable)
	for i := range t {
		if t[i], err = m.At(float64(i) / float64(len(t)-1)); err != nil {
			panic(err)
		}
	}
	return t
}

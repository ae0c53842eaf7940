package viz

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

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

// niceTicks marks about count round values (1, 2, 2.5 or 5 times a power of ten), and more where it would be one.
type niceTicks struct{ count int }

var _ plot.Ticker = niceTicks{}

func (t niceTicks) Ticks(lo, hi float64) []plot.Tick {
	span := hi - lo
	magnitude := math.Pow(10, math.Floor(math.Log10(span/float64(max(t.count, 1)))))
	step := 10 * magnitude
	for _, s := range []float64{1, 2, 2.5, 5} {
		if s*magnitude*float64(max(t.count, 1)) >= span*(1-1e-9) {
			step = s * magnitude
			break
		}
	}
	var ticks []plot.Tick
	first, last := math.Ceil(lo/step-1e-6), math.Floor(hi/step+1e-6)
	largest := math.Max(math.Abs(lo), math.Abs(hi))
	if step < 1e-14*largest { // the span is at the resolution of the numbers
		return []plot.Tick{{Value: lo, Label: tickLabel(lo, 0, largest)}}
	}
	if last-first < 1 && t.count < 5 { // one says nothing of the scale
		return niceTicks{t.count + 1}.Ticks(lo, hi)
	}
	for i := range int(last-first) + 1 {
		k := first + float64(i)
		v := math.Min(math.Max(k*step, lo), hi)
		ticks = append(ticks, plot.Tick{Value: v, Label: tickLabel(k*step, step, largest)})
	}
	return ticks
}

// wholeTicks are niceTicks at whole numbers only, of an axis of steps, epochs or iterations.
type wholeTicks struct{ count int }

var _ plot.Ticker = wholeTicks{}

func (t wholeTicks) Ticks(lo, hi float64) []plot.Tick {
	broken := func(tick plot.Tick) bool { return tick.Value != math.Round(tick.Value) }
	for count := t.count; count > 1; count-- {
		if ticks := (niceTicks{count}).Ticks(lo, hi); !slices.ContainsFunc(ticks, broken) {
			return ticks
		}
	}
	ticks := slices.DeleteFunc(niceTicks(t).Ticks(lo, hi), broken)
	for i := range ticks {
		ticks[i].Label = tickLabel(ticks[i].Value, 1, math.Max(math.Abs(lo), math.Abs(hi)))
	}
	return ticks
}

// logTicks marks 1, 2 and 5 times each power of ten where these labels have room along the axis, else 1 and 3 times,
// else powers of ten alone, every second or third where they are many; smaller ticks without a label stand between. A
// range of less than a factor of 4 has niceTicks.
type logTicks struct {
	length vg.Length // of the axis; 0: it is not known yet
}

var _ plot.Ticker = logTicks{}

func (t logTicks) Ticks(lo, hi float64) []plot.Tick {
	if hi < 4*lo {
		return niceTicks{max(2, int(t.length)/58)}.Ticks(lo, hi)
	}
	sets := [][]int{{1, 2, 5}, {1, 3}, {1}}
	if labelled(t.ticks(lo, hi, sets[0], 1)) < 3 { // within a decade
		sets = append([][]int{{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 3, 5, 7}}, sets...)
	}
	for every := 1; ; every++ {
		for _, digits := range sets {
			if ticks := t.ticks(lo, hi, digits, every); t.room(ticks, lo, hi) {
				return ticks
			}
		}
		sets = [][]int{{1}}
	}
}

// ticks returns the ticks of a range. Labels stand at the given multiples (digits) of every `every`-th power of ten.
func (t logTicks) ticks(lo, hi float64, digits []int, every int) (ticks []plot.Tick) {
	first, last := int(math.Floor(math.Log10(lo)+1e-9)), int(math.Ceil(math.Log10(hi)-1e-9))
	for d := first; d <= last; d++ {
		power := math.Pow(10, float64(d))
		for k := 1; k <= 9; k++ {
			v := float64(k) * power
			if v < lo*(1-1e-9) || v > hi*(1+1e-9) || k > 1 && every > 1 {
				continue
			}
			tick := plot.Tick{Value: min(max(v, lo), hi)}
			if slices.Contains(digits, k) && (d-first)%every == 0 {
				tick.Label = powerLabel(k, d)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// room says whether the labels do not stand on each other. At most one label always has room.
func (t logTicks) room(ticks []plot.Tick, lo, hi float64) bool {
	decades := math.Log10(hi) - math.Log10(lo)
	end := vg.Length(math.Inf(-1)) // of the label before
	for _, tick := range ticks {
		if tick.Label == "" {
			continue
		}
		at := t.length * vg.Length((math.Log10(tick.Value)-math.Log10(lo))/decades)
		const half = vg.Length(tickSize) / 2
		if at-half < end+labelGap {
			return false
		}
		end = at + half
	}
	return true
}

// labelGap is the least space between two labels of an axis.
const labelGap vg.Length = 5

// labelled is the number of ticks with a label.
func labelled(ticks []plot.Tick) (n int) {
	for _, tick := range ticks {
		if tick.Label != "" {
			n++
		}
	}
	return n
}

// powerLabel writes k 10^d.
func powerLabel(k, d int) string {
	if d < -3 || d > 4 {
		return strings.ReplaceAll(fmt.Sprintf("%de%d", k, d), "-", "−")
	}
	return strconv.FormatFloat(float64(k)*math.Pow(10, float64(d)), 'f', max(0, -d), 64)
}

// tickLabel writes v with as many decimals as the step needs, or as mantissa and exponent where that would be long.
func tickLabel(v, step, largest float64) string {
	var s string
	if v == 0 {
		s = "0"
	} else if largest >= 1e6 || largest < 1e-3 {
		digits := 1
		if step > 0 {
			digits = max(0, int(math.Floor(math.Log10(math.Abs(v))+1e-9))-int(math.Floor(math.Log10(step)+1e-9))+1)
		}
		s = strconv.FormatFloat(v, 'e', min(digits, 15), 64)
		mantissa, exponent, _ := strings.Cut(s, "e")
		if strings.Contains(mantissa, ".") {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		exponent = strings.TrimPrefix(exponent, "+")
		negative := strings.HasPrefix(exponent, "-")
		exponent = strings.TrimLeft(exponent, "-0")
		if negative {
			exponent = "-" + exponent
		}
		s = mantissa + "e" + exponent
	} else {
		decimals := 0
		for d := step; step > 0 && decimals < 8 && math.Abs(d-math.Round(d)) > 1e-6*math.Max(1, math.Abs(d)); decimals++ {
			d *= 10
		}
		s = strconv.FormatFloat(v, 'f', decimals, 64)
	}
	return strings.ReplaceAll(s, "-", "−")
}

// colourTable holds the colours from the least value to the greatest.
type colourTable [255]color.Color

// index gives the place of v in [0, 1].
func (t *colourTable) index(v float64) int {
	return int(math.Round(math.Min(math.Max(v, 0), 1) * float64(len(t)-1)))
}

// divergingTable runs from blue over near-white to orange, each half even in CIELAB lightness (Moreland 2009,
// "Diverging Color Maps for Scientific Visualization"); colour-blind readers can tell blue from orange, and the light
// middle is where a classifier is undecided.
func divergingTable() (*colourTable, error) {
	low, err := tabulate(rgb(0x2F7FBF), rgb(0x9CC3E3), rgb(0xF7F7F5))
	if err != nil {
		return nil, err
	}
	high, err := tabulate(rgb(0xD9771F), rgb(0xEFB985), rgb(0xF7F7F5))
	if err != nil {
		return nil, err
	}
	t := new(colourTable)
	for i := range t {
		if k := 2 * i; k < len(t) {
			t[i] = low[k]
		} else {
			t[i] = high[2*(len(t)-1)-k]
		}
	}
	return t, nil
}

// sequentialTable runs from white to a middle blue, even in CIELAB lightness; it stops before the dark blues so that
// marks stay visible on it.
func sequentialTable() (*colourTable, error) {
	t, err := tabulate(rgb(0x3C86BD), rgb(0x8FBFE0), rgb(0xFFFFFF))
	if err != nil {
		return nil, err
	}
	slices.Reverse(t[:])
	return t, nil
}

// tabulate interpolates between colours of growing lightness.
func tabulate(controls ...color.Color) (*colourTable, error) {
	m, err := moreland.NewLuminance(controls)
	if err != nil {
		return nil, err
	}
	m.SetMin(0)
	m.SetMax(1)
	t := new(colourTable)
	for i := range t {
		if t[i], err = m.At(float64(i) / float64(len(t)-1)); err != nil {
			return nil, err
		}
	}
	return t, nil
}

package viz

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
)

// axis is one of the two of a coordinate system.
type axis struct {
	span
	log   bool
	whole bool   // numbers are whole, such as of steps, epochs or iterations
	names []tick // in place of numbers; nil: there are none
	label string
	quiet bool // a neighbour in the grid has the numbers and the label
}

// tick is a mark at an axis, short where it has no label.
type tick struct {
	value float64
	label string
}

// norm is the place of a value on the axis, 0 to 1.
func (a axis) norm(v float64) float64 {
	if a.log {
		return (math.Log(v) - math.Log(a.lo)) / (math.Log(a.hi) - math.Log(a.lo))
	}
	return (v - a.lo) / (a.hi - a.lo)
}

// ticks returns the densest round values, at most so many, whose labels have room along the axis. Extent is what a
// label takes of the length. In an axis so short that even two labels have no room, the last one is left.
func (a axis) ticks(length vg.Length, most int, extent func(label string) vg.Length) (ticks []tick) {
	if a.names != nil {
		return a.names
	}
	for ticks = range a.candidates(most) {
		if a.haveRoom(ticks, length, extent) {
			return ticks
		}
	}
	for i := range len(ticks) - 1 {
		ticks[i].label = ""
	}
	return ticks
}

// labelGap is the least space between two labels of an axis.
const labelGap vg.Length = 4

func (a axis) haveRoom(ticks []tick, length vg.Length, extent func(label string) vg.Length) bool {
	end := vg.Length(math.Inf(-1)) // of the label before
	for _, t := range ticks {
		if t.label == "" {
			continue
		}
		at, half := length*vg.Length(a.norm(t.value)), extent(t.label)/2
		if at-half < end+labelGap {
			return false
		}
		end = at + half
	}
	return true
}

// candidates gives ticks from dense to sparse. Of a logarithmic axis from a factor of 4 on they are 1, 2 and 5 times
// each power of ten, then 1 and 3 times, then powers of ten alone, every second or third where they are many.
func (a axis) candidates(most int) iter.Seq[[]tick] {
	return func(yield func([]tick) bool) {
		if !a.log || a.hi < 4*a.lo {
			for count := max(2, most); count > 0; count-- {
				if !yield(a.round(count)) {
					return
				}
			}
			return
		}
		multiples := [][]int{{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 3, 5, 7}, {1, 2, 5}, {1, 3}, {1}}
		if a.hi > 10*a.lo {
			multiples = multiples[2:]
		}
		for every := 1; every < 1000; every++ {
			for _, labelled := range multiples {
				if !yield(a.decades(labelled, every)) {
					return
				}
			}
			multiples = multiples[len(multiples)-1:]
		}
	}
}

// round returns ticks at about count round values: multiples of 1, 2, 2.5 or 5 times a power of ten.
func (a axis) round(count int) (ticks []tick) {
	power := math.Pow(10, math.Floor(math.Log10((a.hi-a.lo)/float64(count))))
	step := 0.
	for _, digits := range []float64{1, 2, 2.5, 5, 10} {
		step = digits * power
		enough := step*float64(count) >= (a.hi-a.lo)*(1-1e-9)
		if enough && (!a.whole || step == math.Round(step)) {
			break
		}
	}
	if a.whole {
		step = max(step, 1)
	}
	first, last := math.Ceil(a.lo/step-1e-6), math.Floor(a.hi/step+1e-6)
	if last-first < 1 && count < 5 && !(a.whole && step == 1) { // one number says nothing of the scale
		return a.round(count + 1)
	}
	for i := range int(last-first) + 1 {
		k := first + float64(i)
		ticks = append(ticks, tick{min(max(k*step, a.lo), a.hi), tickLabel(k*step, step, max(-a.lo, a.hi))})
	}
	return ticks
}

// decades returns ticks at 1 to 9 times the powers of ten. Those at the given multiples of every `every`-th power have
// a label.
func (a axis) decades(multiples []int, every int) (ticks []tick) {
	first, last := int(math.Floor(math.Log10(a.lo)+1e-9)), int(math.Ceil(math.Log10(a.hi)-1e-9))
	for d := first; d <= last; d++ {
		for k := 1; k <= 9; k++ {
			v := float64(k) * math.Pow(10, float64(d))
			if v < a.lo*(1-1e-9) || v > a.hi*(1+1e-9) || k > 1 && every > 1 {
				continue
			}
			t := tick{value: min(max(v, a.lo), a.hi)}
			if slices.Contains(multiples, k) && (d-first)%every == 0 {
				t.label = tickLabel(v, v, v)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// tickLabel writes a multiple of a step with as many decimals as the step needs, or as mantissa and exponent where the
// largest number of the axis would be long.
func tickLabel(v, step, largest float64) string {
	last := int(math.Floor(math.Log10(step) + 1e-9)) // the power of ten of the last digit
	if digits := step / math.Pow(10, float64(last)); math.Abs(digits-math.Round(digits)) > 1e-6 {
		last-- // the step is 2.5
	}
	text := "0"
	if large := largest >= 1e6 || largest < 1e-3; large && v != 0 {
		digits := int(math.Floor(math.Log10(math.Abs(v))+1e-9)) - last
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', min(max(digits, 0), 15), 64), "e")
		if strings.Contains(mantissa, ".") {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		power, _ := strconv.Atoi(exponent) // of FormatFloat
		text = mantissa + "e" + strconv.Itoa(power)
	} else if v != 0 {
		text = strconv.FormatFloat(v, 'f', max(0, -last), 64)
	}
	return strings.ReplaceAll(text, "-", "−")
}

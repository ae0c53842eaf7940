package viz

import (
	"math"
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

// tick is a mark at an axis.
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

// ticks are round values of an axis of that length, of which each takes the given part; at least about two. A
// logarithmic axis from a factor of 10 on has them at powers of ten.
func (a axis) ticks(length, each vg.Length) []tick {
	most := max(2, int(length/each))
	switch {
	case a.names != nil:
		return a.names
	case a.log && a.hi >= 10*a.lo:
		return a.powers(most)
	}
	return a.round(most)
}

// round returns ticks at no more than about most round values: multiples of 1, 2, 2.5 or 5 times a power of ten.
func (a axis) round(most int) (ticks []tick) {
	least := (a.hi - a.lo) / float64(most) * (1 - 1e-9)
	power := math.Pow(10, math.Floor(math.Log10(least)))
	step := 0.
	for _, digits := range []float64{1, 2, 2.5, 5, 10} {
		if step = digits * power; step >= least {
			break
		}
	}
	if a.whole {
		step = math.Ceil(step)
	}
	first, last := math.Ceil(a.lo/step-1e-6), math.Floor(a.hi/step+1e-6)
	if last <= first && most < 5 && !(a.whole && step == 1) { // one number says nothing of the scale
		return a.round(most + 1)
	}
	for i := range int(last-first) + 1 {
		v := (first + float64(i)) * step
		ticks = append(ticks, tick{min(max(v, a.lo), a.hi), tickLabel(v)})
	}
	return ticks
}

// powers returns ticks at powers of ten, of many at every second or third, of few also at 2 and 5 times these.
func (a axis) powers(most int) (ticks []tick) {
	first, last := math.Floor(math.Log10(a.lo)), math.Floor(math.Log10(a.hi))
	multiples := []float64{1, 2, 5}
	if 3*(last-first) > float64(most) {
		multiples = multiples[:1]
	}
	for power := first; power <= last; power += math.Ceil((last - first) / float64(most)) {
		for _, k := range multiples {
			if v := k * math.Pow(10, power); v >= a.lo && v <= a.hi {
				ticks = append(ticks, tick{v, tickLabel(v)})
			}
		}
	}
	return ticks
}

// tickLabel writes a number with the digits that it needs, from a million on and below 0.0001 with a power of ten.
func tickLabel(v float64) string {
	exact, _ := strconv.ParseFloat(strconv.FormatFloat(v+0, 'g', 12, 64), 64) // of 0.30000000000000004, and of -0
	text := strconv.FormatFloat(exact, 'g', -1, 64)
	return strings.NewReplacer("e+0", "e", "e+", "e", "e-0", "e−", "-", "−").Replace(text)
}

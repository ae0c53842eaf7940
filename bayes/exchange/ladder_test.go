package exchange

import (
	"testing"

	"gonum.org/v1/gonum/floats"
)

// A found ladder whose powers double has, laid out anew, a multiple of four steps, each at most one and a half times as
// long as those in its place, and ends at 1.
func TestLadderOf(t *testing.T) {
	for _, c := range []struct{ found, want []float64 }{
		{[]float64{1}, []float64{1}},
		{[]float64{.1, .2, .5, 1}, []float64{.1, .2, .5, 1}},
		// A step from a ten-thousandth needs another power between.
		{[]float64{1e-4, 1}, []float64{1e-4, 1e-2, 1}},
		// Four steps and a half: four of 9/8.
		{[]float64{.1, .2, .4, .8, 1}, []float64{.1125, .25, .55, 1}},
		// Six steps and a half are more than four can make: eight of 13/16.
		{[]float64{.025, .05, .1, .2, .4, .8, 1}, []float64{.0203125, .040625, .071875, .125, .2125, .375, .675, 1}},
	} {
		if got := ladderOf(c.found); !floats.EqualApprox(got, c.want, 1e-12) {
			t.Errorf("%v laid out anew is %v, want %v", c.found, got, c.want)
		}
	}
}

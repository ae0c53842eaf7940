//go:build long

package smc_test

import (
	"testing"

	"gobnn/bayes/compute/computetest"
)

// TestTwoWidthsLong holds runs to their stated errors on modes of two widths, and of one in ten dimensions. Of 64
// squares of a normal number the mean is below .45 or above 1.85 once in 10^4. It takes minutes.
func TestTwoWidthsLong(t *testing.T) {
	engine := computetest.XLA(t, "many runs")
	for _, w := range []twoWidths{narrow, {10, .3, .3}} {
		if e := w.sampled(t, engine, 64); e.square < .45 || e.square > 1.85 || e.spread > .08 || e.lost > 0 {
			t.Errorf("%+v: %+v", w, e)
		}
	}
	for _, w := range needles {
		if e := w.sampled(t, engine, 64); e.lost < 54 { // of which each is found with a probability above .9
			t.Errorf("%+v: %+v", w, e)
		}
	}
}

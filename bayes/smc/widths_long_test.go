//go:build long

package smc_test

import (
	"testing"

	"gobnn/bayes/compute/computetest"
)

// Runs hold to their stated errors on modes of two widths, and of one in ten dimensions. Of 24 squares of a normal
// number the mean is below .24 or above 2.54 once in 10^4.
func TestTwoWidthsLong(t *testing.T) {
	engine := computetest.XLA(t, "many runs")
	for _, w := range []twoWidths{narrow, {10, .3, .3}} {
		if e := w.sampled(t, engine, 24); e.square < .24 || e.square > 2.54 || e.spread > .08 {
			t.Errorf("%+v: %+v", w, e)
		}
	}
}

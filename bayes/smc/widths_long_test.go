//go:build long

package smc_test

import (
	"testing"

	"gobnn/bayes/compute/computetest"
)

// TestTwoWidthsLong holds both samplers to their stated errors on modes of two widths, and of one in ten dimensions. Of
// 64 squares of a normal number the mean is below .45 or above 1.85 once in 10^4; replica exchange takes longer and has
// 16, whose mean is below .25 or above 2.5 as rarely.
func TestTwoWidthsLong(t *testing.T) {
	engine := computetest.XLA(t, "many runs")
	for _, w := range []twoWidths{narrow, equal} {
		if e := w.sampled(t, engine, 64); e.square < .45 || e.square > 1.85 || e.spread > .08 || e.lost > 0 {
			t.Errorf("%+v: Sample: %+v", w, e)
		}
		if e := w.exchanged(t, engine, 16); e.square < .25 || e.square > 2.5 || e.spread > .05 || e.lost > 0 {
			t.Errorf("%+v: ReplicaExchange: %+v", w, e)
		}
	}
}

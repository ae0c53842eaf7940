//go:build long

package smc_test

import (
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/exchange"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
)

// TestTwoWidthsLong holds both samplers to their stated errors on modes of two widths, and of one in ten dimensions. Of
// 64 squares of a normal number the mean is below .45 or above 1.85 once in 10^4. It takes ten minutes.
func TestTwoWidthsLong(t *testing.T) {
	engine := computetest.XLA(t, "many runs")
	for _, w := range []twoWidths{narrow, {10, .3, .3}} {
		for name, e := range map[string]estimates{
			"Sample": w.sampled(t, engine, 64), "Replicas": w.exchanged(t, engine, 64),
		} {
			if e.square < .45 || e.square > 1.85 || e.spread > .08 || e.lost > 0 {
				t.Errorf("%+v: %s: %+v", w, name, e)
			}
		}
	}
	for _, w := range needles {
		if e := w.sampled(t, engine, 64); e.lost < 54 { // of which each is found with a probability above .9
			t.Errorf("%+v: %+v", w, e)
		}
	}
}

// exchanged is what replica exchange gives with default settings.
func (w twoWidths) exchanged(t *testing.T, engine *compute.Engine, seeds int) estimates {
	problem := w.problem()
	return w.over(t, seeds, func(seed uint64) (any, float64, float64, []string, error) {
		r, err := fit.Sample(t.Context(), problem, exchange.Replicas{Kernel: mcmc.HMC{}}, run.Settings{
			Seed: seed, Engine: engine,
		})
		if err != nil {
			return nil, 0, 0, nil, err
		}
		return r.Draws.Phi.Value(), r.Draws.Evidence.Value, r.Draws.Evidence.StdErr, r.Warnings, nil
	})
}

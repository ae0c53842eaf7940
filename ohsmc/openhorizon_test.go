package ohsmc

import (
	"testing"

	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
)

// With a threshold, particles keep their weights until the effective sample size is low enough.
func TestThreshold(t *testing.T) {
	training := particles.Training{Particles: 50, BatchSize: 4, Epochs: 3, Threshold: .5}
	_, result := fitted(t, fittest.Small, OpenHorizon{Training: training}, fittest.Parts(t, 60), run.Settings{})
	previous := 50.0
	some := false
	for i, r := range result.Trace {
		if (r.Resamplings == 1) != (previous <= 25) {
			t.Errorf("step %d: %d resamplings, but the effective sample size was %.1f of 50", i+1, r.Resamplings, previous)
		}
		if r.Resamplings == 0 && r.UniqueAncestors != 50 {
			t.Errorf("step %d: not resampled, but %v unique ancestors", i+1, r.UniqueAncestors)
		}
		some = some || r.Resamplings == 1
		previous = r.ESS
	}
	if !some {
		t.Error("never resampled")
	}
}

package ohsmc

import (
	"fmt"
	"math"
	"testing"

	"gobnn/bayes/dataset"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"gonum.org/v1/gonum/stat"
)

// The estimate of the evidence is unbiased at any number of particles: over 200 independent passes of SMC with few of
// them the mean of Z-hat/Z is 1, by Student's t, whether weights are carried from datum to datum, forgotten by
// resampling after each, or never resampled. |t| < 4.5 raises a false alarm in 1 of 100 000 tests; the seeds are
// fixed. The standard deviation of the ratio is held to what was measured and a quarter more, so that a mean of 1.07
// shows: an increment that takes weights for equal where they are carried gives .7. The step size is fixed: one taken
// from the particles themselves, Precondition, costs a bias of the order of 1/J (.015 here, over 3000 passes).
func TestEvidenceIsUnbiased(t *testing.T) {
	const sd, passes = 2, 200
	data := fittest.Data(9)
	exact := posteriorOf(t, data, sd)
	for _, c := range []struct {
		threshold, deviation float64
		resamplings          func(mean float64) bool
	}{
		{.5, .175, func(mean float64) bool { return mean > .5 && mean < 4 }},
		{1, .235, func(mean float64) bool { return mean == 8 }},
		{1e-9, .175, func(mean float64) bool { return mean == 0 }},
	} {
		t.Run(fmt.Sprint("threshold ", c.threshold), func(t *testing.T) {
			_, details := fitted(t, fittest.Line(sd), SMC{
				Training: particles.Training{
					Particles: 50, BatchSize: 9, Epochs: passes, Threshold: c.threshold, Resampler: smc.Multinomial,
				},
				Kernel: mcmc.RandomWalkMetropolis{StepSize: .6}, Moves: 1,
			}, dataset.Parts{Train: data}, run.Settings{Seed: 1})
			var ratios, resamplings []float64
			for _, r := range details.Trace {
				ratios = append(ratios, math.Exp(r.LogEvidence-exact.logEvidence))
				resamplings = append(resamplings, float64(r.Resamplings))
			}
			mean, deviation := stat.MeanStdDev(ratios, nil)
			student := (mean - 1) / (deviation / math.Sqrt(passes))
			t.Logf("Z-hat/Z has mean %.3f and standard deviation %.3f: t = %.1f; %.1f resamplings a pass", mean, deviation,
				student, stat.Mean(resamplings, nil))
			if math.Abs(student) > 4.5 || deviation > 1.25*c.deviation {
				t.Errorf("Z-hat/Z has mean %.3f and standard deviation %.3f: t = %.1f", mean, deviation, student)
			}
			if !c.resamplings(stat.Mean(resamplings, nil)) {
				t.Errorf("%.1f resamplings a pass: this tests little", stat.Mean(resamplings, nil))
			}
		})
	}
}

package ohsmc

import (
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/nn"
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

// The three tasks train end to end on real data; a few epochs must beat guessing by the class frequencies, or the mean.
// The examples train on XLA.
func TestTasks(t *testing.T) {
	cancer, err := dataset.Load("breast_cancer")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		data       *dataset.Dataset
		likelihood bayes.Likelihood
		guess      float64 // NLPD of guessing, of a standardised target
	}{
		{dataset.MustLoad("yacht"), bayes.Gaussian{}, 1.4}, {cancer, bayes.Bernoulli{}, .66}, {dataset.MustLoad("wine"),
			bayes.Categorical{}, 1.08},
	} {
		if testing.Short() && c.data.Name != "yacht" {
			continue
		}
		parts, err := c.data.Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		model := bayes.Model{Network: nn.MLP{Hidden: []int{20, 5}, Activation: nn.GELU}, Likelihood: c.likelihood,
			Stochastic: bayes.Layers(2)}
		training := particles.Training{Particles: 50, BatchSize: 20, Epochs: 10}
		result, details := fitted(t, model, OpenHorizon{Training: training}, parts, run.Settings{})
		best := details.Best.NLPD
		if c.data.Task == dataset.Regression {
			best -= math.Log(result.Posterior.Origin().Target.StdDev[0])
		}
		if best > .75*c.guess && c.guess < 1.3 || best > 1.1 {
			t.Errorf("%s: validation NLPD %.3f, guessing has %.2f", c.data.Name, best, c.guess)
		}
	}
}

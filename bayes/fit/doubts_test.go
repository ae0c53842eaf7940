package fit_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"gonum.org/v1/gonum/mat"
)

// Intervals that hold clearly too few of the validation part's targets, or too many, are doubted, right ones and those
// of few rows are not. The target is noise with a standard deviation of 1.
func TestIntervalsAreJudged(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	data := &dataset.Dataset{Name: "noise", Features: []string{"x"}, Target: "y", X: mat.NewDense(300, 1, nil),
		Y: make([]float64, 300)}
	for i := range data.Y {
		data.X.(*mat.Dense).Set(i, 0, rng.Float64())
		data.Y[i] = rng.NormFloat64()
	}
	method := baseline.MAP{Training: train.Training{Epochs: 300}}
	for _, c := range []struct {
		stdDev, validation float64
		want               string
	}{
		{.6, .5, "too narrow"}, {1, .5, ""}, {2, .5, "too wide"}, {1, .05, ""}, {1.5, .05, ""},
	} {
		parts := computetest.Must(data.Split(dataset.Fractions{Train: 1 - c.validation, Validation: c.validation}, 1))
		method.BatchSize = parts.Train.Rows()
		model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: c.stdDev}}
		result := computetest.Must(fit.Fit(t.Context(), model, method, parts, run.Settings{Engine: computetest.Go(t)}))
		got, kept := "", result.Posterior.Provenance()
		if !slices.Equal(kept.Warnings, result.Warnings) || kept.Status != string(result.Status) {
			t.Errorf("%s %q, but the posterior keeps %s %q", result.Status, result.Warnings, kept.Status, kept.Warnings)
		}
		for _, w := range result.Warnings {
			if strings.Contains(w, "90 % intervals") {
				got = w
			}
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("a standard deviation of %v by %d validation rows: %q, want %q", c.stdDev, parts.Validation.Rows(), got,
				c.want)
		}
	}
}

// A training is too short if its scores still fall at its end, to the lowest of all: not if they came to rest, rose
// again, or only scatter. If they are best at the beginning and far worse at the end, the cure is smaller steps.
func TestEnding(t *testing.T) {
	of := func(n int, score func(at float64) float64) []float64 {
		scores := make([]float64, n)
		for i := range scores {
			scores[i] = score(float64(i) / float64(n-1))
		}
		return scores
	}
	rng := rand.New(rand.NewPCG(1, 1))
	noise := func(float64) float64 { return 1 + .3*rng.NormFloat64() }
	astray := func(best, end float64) func(float64) float64 { // the best is the fifth of 200
		return func(at float64) float64 {
			switch step := math.Round(199 * at); {
			case step <= 4:
				return best + 4 - step
			default:
				return best + (end-best)*min(1, .01*(step-4))
			}
		}
	}
	peak := func(dip, top float64) func(float64) float64 { // falls from 3 to 1.35 at dip, rises to 40 at top, then falls
		return func(at float64) float64 {
			switch {
			case at <= dip:
				return 3 - 1.65*at/dip
			case at <= top:
				return 1.35 + 38.65*(at-dip)/(top-dip)
			default:
				return 40 - 18*(at-top)/(1-top)
			}
		}
	}
	for name, c := range map[string]struct {
		scores []float64
		says   string
	}{
		"falls":               {of(100, func(at float64) float64 { return 4 - at }), "by 0.25 nats"},
		"falls, and scatters": {of(200, func(at float64) float64 { return noise(at) - 2*at }), "of its 800 steps"},
		"came to rest":        {of(200, func(at float64) float64 { return 1 + 3*math.Exp(-20*at) }), ""},
		"falls by little":     {of(200, func(at float64) float64 { return 1 - .05*at }), ""},
		"rises again":         {of(200, func(at float64) float64 { return 1 + math.Abs(at-.5) }), ""},
		"rises at once":       {of(200, astray(1.35, 19)), "number 5 is the best, and"},
		"rises at once, by +": {of(200, astray(1.35, math.Inf(1))), "by +Inf nats"},
		"fits the noise":      {of(200, peak(.06, 1)), ""},
		"rises by half a nat": {of(200, astray(1.35, 1.8)), ""},
		"rises, then falls":   {of(200, peak(.02, .5)), "take smaller steps"},
		"falls from a peak":   {of(200, peak(.3, .7)), ""},
		"falls below the dip": {of(200, func(at float64) float64 { return peak(.02, .5)(at) - 60*max(0, at-.6) }), "Epochs"},
		"rose, came back":     {of(200, func(at float64) float64 { return peak(.02, .5)(at) - 20.2*max(0, at-.6)/.4 }), ""},
		"few":                 {of(15, func(at float64) float64 { return 4 - at }), ""},
		"none":                {nil, ""},
		"not finite":          {of(100, func(at float64) float64 { return math.Inf(1) }), ""},
		"no number":           {of(100, func(at float64) float64 { return math.NaN() }), ""},
	} {
		got := strings.Join(fit.Ending(c.scores, 800, 200).Sentences(), "; ")
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
	// By noise alone Student's t with some 24 degrees of freedom is above 3 in 3 of 1000 runs.
	alarms := 0
	for range 2000 {
		alarms += len(fit.Ending(of(50, noise), 800, 200))
	}
	if alarms > 20 {
		t.Errorf("%d of 2000 trainings whose scores only scatter are called too short", alarms)
	}
}

// Intervals of amounts that reach below 0 are said, by whatever rows there are; of targets far above 0, or some below,
// nothing is.
func TestIntervalsBelowZeroAreSaid(t *testing.T) {
	for _, c := range []struct {
		least float64 // of the targets, which are spread over 2 from there
		says  bool
	}{{.05, true}, {9, false}, {-1, false}} {
		rng := rand.New(rand.NewPCG(1, 3))
		data := &dataset.Dataset{Name: "lives", Features: []string{"x"}, Target: "y", X: mat.NewDense(100, 1, nil),
			Y: make([]float64, 100)}
		for i := range data.Y {
			data.X.(*mat.Dense).Set(i, 0, rng.Float64())
			data.Y[i] = c.least + 2*rng.Float64()*rng.Float64()
		}
		parts := computetest.Must(data.Split(dataset.Fractions{Train: .7, Validation: .3}, 1))
		model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: 1, Learn: true}}
		for _, parts := range []dataset.Parts{parts, {Train: data}} {
			method := baseline.MAP{Training: train.Training{Epochs: 100, BatchSize: 70}}
			result := computetest.Must(fit.Fit(t.Context(), model, method, parts, run.Settings{Engine: computetest.Go(t)}))
			if got := strings.Contains(strings.Join(result.Warnings, "; "), "begin below 0"); got != c.says {
				t.Errorf("targets from %v: %q", c.least, result.Warnings)
			}
		}
	}
}

// A posterior that predicts the validation part worse than a linear model is doubted, of numbers and of classes; one
// that predicts as well is not.
func TestLinearModelIsNoWorse(t *testing.T) {
	for _, task := range []dataset.Task{dataset.Regression, dataset.BinaryClassification} {
		rng := rand.New(rand.NewPCG(1, 2))
		data := &dataset.Dataset{Name: "plane", Features: []string{"a", "b"}, Target: "y", Task: task,
			X: mat.NewDense(400, 2, nil), Y: make([]float64, 400)}
		model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: 1, Learn: true}}
		if task != dataset.Regression {
			data.Classes, model.Likelihood = []string{"no", "yes"}, bayes.Bernoulli{}
		}
		for i := range data.Y {
			a, b := rng.NormFloat64(), rng.NormFloat64()
			data.X.(*mat.Dense).SetRow(i, []float64{a, b})
			data.Y[i] = a - 2*b + .5*rng.NormFloat64()
			if task != dataset.Regression {
				data.Y[i] = float64(min(1, max(0, int(data.Y[i]+1))))
			}
		}
		parts := computetest.Must(data.Split(dataset.Fractions{Train: .75, Validation: .25}, 1))
		for _, c := range []struct {
			epochs int
			want   bool
		}{{1, true}, {300, false}} {
			method := baseline.MAP{Training: train.Training{Epochs: c.epochs, BatchSize: 50}}
			result := computetest.Must(fit.Fit(t.Context(), model, method, parts, run.Settings{Engine: computetest.Go(t)}))
			if got := strings.Contains(strings.Join(result.Warnings, "; "), "a linear model predicts"); got != c.want {
				t.Errorf("%v after %d epochs: doubted %v, want %v: %q", task, c.epochs, got, c.want, result.Warnings)
			}
		}
	}
}

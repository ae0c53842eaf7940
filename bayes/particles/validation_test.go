package particles_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/metric"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
	"gobnn/ohsmc"
)

// A validation scores the particles and psi as the step left them, and what is kept is bit by bit what an observer
// saw after Best.Step: not one step earlier or later.
func TestValidationScoresAndKeepsTheSameStep(t *testing.T) {
	p := fittest.Parts(t, 60)
	for _, every := range []int{1, 3} {
		t.Run(fmt.Sprint("every ", every), func(t *testing.T) {
			seen := map[int]*bayes.Posterior{}
			result, d := trained(t, particles.Training{
				Particles: 50, BatchSize: 12, Epochs: 20, ValidateEvery: every,
				Optimiser: train.Adam{Schedule: train.Constant(.1)}, // so that the validation soon turns
			}, run.Settings{
				Seed: 1, ObserveEvery: 1, Observe: func(step int, now *bayes.Posterior) error {
					seen[step] = now
					return nil
				},
			})
			if best := d.Best.Step; best <= every || best == d.Steps {
				t.Fatalf("the best of %d steps is %d: this tests little", d.Steps, best)
			}
			if !slices.Equal(fittest.Numbers(t, result.Posterior), fittest.Numbers(t, seen[d.Best.Step])) {
				t.Errorf("the posterior is not that of step %d, the best validation's", d.Best.Step)
			}
			for _, step := range []int{d.Best.Step - 1, d.Best.Step + 1} {
				if slices.Equal(fittest.Numbers(t, result.Posterior), fittest.Numbers(t, seen[step])) {
					t.Errorf("step %d has the same bits: this tests little", step)
				}
			}
			for _, v := range d.Validated {
				prediction, err := seen[v.Step].Predict(t.Context(), p.Validation.X)
				if err != nil {
					t.Fatal(err)
				}
				nlpd, err := metric.NLPD(prediction, p.Validation.Y)
				if err != nil {
					t.Fatal(err)
				}
				if math.Abs(nlpd.Value-v.NLPD) > 1e-5 {
					t.Errorf("the validation after step %d says %.7f, its posterior has %.7f", v.Step, v.NLPD, nlpd.Value)
				}
			}
		})
	}
}

// Where no validation has a finite NLPD the last step's posterior is returned, and a warning says so.
func TestNoFiniteValidation(t *testing.T) {
	for target, warned := range map[float64]bool{9e17: true, 1: false} { // over .001, the square is 8e41, beyond float32
		p := fittest.Parts(t, 60)
		p.Validation.Y[0] = target
		method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 20, Epochs: 2}}
		result, d := fittest.Fit[*particles.Details](t, fittest.Line(1e-3), method, p,
			run.Settings{Engine: computetest.Go(t)})
		text := strings.Join(result.Warnings, "; ")
		if strings.Contains(text, "none of the 2 validations") != warned || (d.Best.Step == 0) != warned {
			t.Errorf("a target of %v: best %+v, warnings %q", target, d.Best, text)
		}
	}
}

// By default a training validates once an epoch, and stops where twenty validations are not better. Without a
// validation part it makes all epochs, and the last state is the result.
func TestDefaultPatience(t *testing.T) {
	p := fittest.Parts(t, 60)
	for i := range p.Validation.Y { // any training is for the worse
		p.Validation.Y[i] += 50
	}
	training := particles.Training{Particles: 20, BatchSize: (p.Train.Rows() + 1) / 2}
	settings := run.Settings{Engine: computetest.Go(t)}
	_, d := fittest.Fit[*particles.Details](t, fittest.Line(1), ohsmc.OpenHorizon{Training: training}, p, settings)
	if epochs := d.Steps / 2; d.Steps != 2*len(d.Validated) || epochs != d.Best.Step/2+20 || epochs >= 200 {
		t.Errorf("%d steps, %d validations, the best at step %d", d.Steps, len(d.Validated), d.Best.Step)
	}
	p.Validation, training.Epochs = nil, 30
	_, d = fittest.Fit[*particles.Details](t, fittest.Line(1), ohsmc.OpenHorizon{Training: training}, p, settings)
	if d.Steps != 60 || d.Best.Step != 0 || len(d.Validated) != 0 {
		t.Errorf("without a validation part: %+v", d)
	}
}

// Where nothing looks at the state between steps a call makes several: the bits, the records, the validations and the
// end are those of a run that is observed after each step.
func TestStepsOfACall(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, every := range []int{1, 3} {
			training := particles.Training{
				Particles: 50, BatchSize: 8, Epochs: 20, ValidateEvery: every, Patience: 4,
				Optimiser: train.Adam{Schedule: train.Constant(.3)},
			}
			settings := run.Settings{Engine: engine, DType: dtype}
			calls, seen := 0, 0
			watched := run.Watched(t.Context(), func(run.Progress, run.Machine) { calls++ })
			fast := computetest.Must(fit.Fit(watched, fittest.Small, ohsmc.OpenHorizon{Training: training},
				fittest.Parts(t, 60), settings))
			settings.ObserveEvery, settings.Observe = 1, func(int, *bayes.Posterior) error {
				seen++
				return nil
			}
			slow, d := trained(t, training, settings)
			if fmt.Sprint(*fit.Details[*particles.Details](fast)) != fmt.Sprint(*d) || fast.Status != slow.Status ||
				!slices.Equal(fittest.Numbers(t, fast.Posterior), fittest.Numbers(t, slow.Posterior)) {
				t.Errorf("validated every %d: other records or bits than one by one", every)
			}
			if d.Steps != seen || d.Steps == 20*5 || engine.IsXLA() == (calls == seen) {
				t.Errorf("%d steps, %d of them observed, in %d calls", d.Steps, seen, calls)
			}
		}
	})
}

// Particles that are lost within a call are an error of that step: that of the batch with an outlier, whose square is
// beyond float32.
func TestLostWithinACall(t *testing.T) {
	data := fittest.Data(60)
	data.Y[7] += 1e3
	var errs []string
	for _, observed := range []bool{false, true} {
		settings := run.Settings{}
		if observed {
			settings.ObserveEvery, settings.Observe = 1, func(int, *bayes.Posterior) error { return nil }
		}
		method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 20, BatchSize: 8}}
		_, err := fit.Fit(t.Context(), fittest.Line(3e-19), method, dataset.Parts{Train: data}, settings)
		computetest.WantError(t, "all are lost", err, bayes.ErrZeroWeights.Error())
		errs = append(errs, fmt.Sprint(err))
	}
	if errs[0] != errs[1] || strings.Contains(errs[0], "step 1 of") {
		t.Errorf("errors %q", errs)
	}
}

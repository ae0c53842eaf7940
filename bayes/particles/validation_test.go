package particles_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/fit"
	"gobnn/bayes/metric"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
	"gobnn/ohsmc"
)

// A validation scores the particles and psi as the step left them, and what is kept is bit by bit what an observer
// saw after Best.Step: not one step earlier or later.
func TestValidationScoresAndKeepsTheSameStep(t *testing.T) {
	p := parts(t)
	for _, every := range []int{1, 3} {
		t.Run(fmt.Sprint("every ", every), func(t *testing.T) {
			seen := map[int]*bayes.Posterior{}
			result := trained(t, particles.Training{
				Particles: 50, BatchSize: 12, Epochs: 20, ValidateEvery: every,
				Optimiser: train.Adam{Schedule: train.Constant(.1)}, // so that the validation soon turns
			}, run.Settings{
				Seed: 1, ObserveEvery: 1, Observe: func(step int, now *bayes.Posterior) error {
					seen[step] = now
					return nil
				},
			})
			if best := result.Best.Step; best <= every || best == result.Steps {
				t.Fatalf("the best of %d steps is %d: this tests little", result.Steps, best)
			}
			if !slices.Equal(numbers(t, result.Posterior), numbers(t, seen[result.Best.Step])) {
				t.Errorf("the posterior is not that of step %d, the best validation's", result.Best.Step)
			}
			for _, step := range []int{result.Best.Step - 1, result.Best.Step + 1} {
				if slices.Equal(numbers(t, result.Posterior), numbers(t, seen[step])) {
					t.Errorf("step %d has the same bits: this tests little", step)
				}
			}
			for _, v := range result.Validated {
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
		p := parts(t)
		p.Validation.Y[0] = target
		method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 20, Epochs: 2}}
		result, err := tried(t.Context(), line(1e-3), method, p, run.Settings{Engine: computetest.Go(t)})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(result.Warnings, "; ")
		if strings.Contains(text, "none of the 2 validations") != warned || (result.Best.Step == 0) != warned {
			t.Errorf("a target of %v: best %+v, warnings %q", target, result.Best, text)
		}
	}
}

// By default a training validates once an epoch, and stops where twenty validations are not better.
func TestDefaultPatience(t *testing.T) {
	p := parts(t)
	for i := range p.Validation.Y { // they tell that any training is for the worse
		p.Validation.Y[i] += 50
	}
	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 20, BatchSize: (p.Train.Rows() + 1) / 2}}
	result, err := fit.Fit(t.Context(), line(1), method, p, run.Settings{Engine: computetest.Go(t)})
	if err != nil {
		t.Fatal(err)
	}
	d := fit.Details[*particles.Details](result)
	if epochs := d.Steps / 2; d.Steps != 2*len(d.Validated) || epochs != d.Best.Step/2+20 || epochs >= 200 {
		t.Errorf("%d steps, %d validations, the best at step %d", d.Steps, len(d.Validated), d.Best.Step)
	}
	p.Validation = nil
	method.Epochs = 30
	result, err = fit.Fit(t.Context(), line(1), method, p, run.Settings{Engine: computetest.Go(t)})
	if d := fit.Details[*particles.Details](result); err != nil || d.Steps != 60 {
		t.Errorf("without a validation part: %d steps, %v", d.Steps, err)
	}
}

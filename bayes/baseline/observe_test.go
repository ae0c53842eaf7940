package baseline

import (
	"errors"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
)

// Observe sees a posterior after each epoch of the training, or as often as it asks, and in the end the one that is
// returned; an error of it ends the run, with a result of what was there where the training is the whole of the method.
func TestObserve(t *testing.T) {
	parts := dataset.Parts{Train: line(40)}
	for _, method := range []fit.Method{MAP{}, VI{Samples: 7}, Ensemble{Members: 2}, SWAG{Collect: 2}} {
		for every, want := range map[int][]int{0: {5, 10, 15}, 4: {4, 8, 12}} { // 5 batches an epoch
			var steps []int
			var last *bayes.Posterior
			settings := Settings{Epochs: 3, BatchSize: 8, Engine: goEngine(t), ObserveEvery: every}
			settings.Observe = func(step int, now *bayes.Posterior) error {
				steps, last = append(steps, step), now
				return nil
			}
			result := fitted(t, small, method, parts, settings)
			if !slices.Equal(steps, want) {
				t.Errorf("%s: saw the steps %v, want %v", nameOf(method), steps, want)
			}
			if _, swag := method.(SWAG); swag && last.Particles() == 1 {
				continue // its training is of a point; the collection is not observed
			}
			if same := slices.Equal(numbers(t, last), numbers(t, result.Posterior)); same != (every == 0) {
				t.Errorf("%s: the posterior after step %d is that of the end: %t", nameOf(method), steps[len(steps)-1], same)
			}
		}
	}
	var draws []int
	var last *bayes.Posterior
	settings := Settings{Epochs: 3, BatchSize: 40, Engine: goEngine(t), ObserveEvery: 3,
		Observe: func(step int, now *bayes.Posterior) error {
			draws, last = append(draws, step), now
			return nil
		}}
	chains := mcmc.Chains{Kernel: mcmc.HMC{StepSize: .01, Steps: 2}, Chains: 2, Draws: 6, WarmUp: 2}
	result := fitted(t, small, MAPHMC{Chains: chains}, parts, settings)
	if !slices.Equal(draws, []int{3, 3, 6}) { // the training's step, and the chains' draws
		t.Errorf("saw the steps %v, want 3, 3, 6", draws)
	}
	if last.Chains() != 2 || !slices.Equal(numbers(t, last), numbers(t, result.Posterior)) {
		t.Errorf("of %d chains, the last posterior seen is not the result's", last.Chains())
	}
	stop := errors.New("enough")
	observe := func(int, *bayes.Posterior) error { return stop }
	for _, method := range []fit.Method{MAP{}, SWAG{}} {
		settings := Settings{Epochs: 2, BatchSize: 8, Engine: goEngine(t), Observe: observe}
		result, err := Fit(t.Context(), small, method, parts, settings)
		if !errors.Is(err, stop) {
			t.Errorf("%s: error %v, want Observe's", nameOf(method), err)
		}
		if _, one := method.(MAP); !one {
			if result != nil {
				t.Errorf("%s: a result of a training that its second stage did not follow", nameOf(method))
			}
			continue
		}
		if result == nil || result.Status != run.Stopped || result.Steps != 5 || result.Posterior == nil {
			t.Errorf("%s: %+v beside the error, want what was there after 5 steps", nameOf(method), result)
		}
	}
}

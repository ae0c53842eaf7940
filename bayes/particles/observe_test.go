package particles_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/ohsmc"
)

// An observer sees the particles after each so many steps, the last of them those of the result, and changes nothing;
// its error ends the run.
func TestObserve(t *testing.T) {
	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 10, BatchSize: 5, Epochs: 2}}
	data := dataset.Parts{Train: linear(20)}
	settings := run.Settings{Engine: computetest.Go(t)}
	psi := func(p *bayes.Posterior) float64 {
		value, _, err := p.Parameter("layer1/biases")
		if err != nil {
			t.Fatal(err)
		}
		return value[0]
	}
	plain, err := fit.Fit(t.Context(), small, method, data, settings)
	if err != nil {
		t.Fatal(err)
	}
	for every, want := range map[int][]int{0: {4, 8}, 3: {3, 6}, 8: {8}} {
		var steps []int
		var last float64
		settings.ObserveEvery = every
		settings.Observe = func(step int, now *bayes.Posterior) error {
			steps, last = append(steps, step), psi(now)
			return nil
		}
		result, err := fit.Fit(t.Context(), small, method, data, settings)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(steps, want) || psi(result.Posterior) != psi(plain.Posterior) || want[len(want)-1] == 8 &&
			last != psi(plain.Posterior) {
			t.Errorf("every %d: observed at %v, want %v; psi %v at last, the run's %v, without an observer %v", every, steps,
				want, last, psi(result.Posterior), psi(plain.Posterior))
		}
	}
	fault := errors.New("disk full")
	settings.Observe = func(int, *bayes.Posterior) error { return fault }
	if _, err := fit.Fit(t.Context(), small, method, data, settings); !errors.Is(err, fault) {
		t.Errorf("error %v, want the observer's", err)
	}
	settings.ObserveEvery = -1
	_, err = fit.Fit(t.Context(), small, method, data, settings)
	if err == nil || !strings.Contains(err.Error(), "ObserveEvery") {
		t.Errorf("error %v, want one that names ObserveEvery", err)
	}
}

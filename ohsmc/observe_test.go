package ohsmc

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
)

// An observer sees the particles after each so many steps, the last of them those of the result, and changes nothing;
// its error ends the run.
func TestObserve(t *testing.T) {
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	data, err := dataset.Crescent(20, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	model := asItIs(bayes.Model{Network: crescent{}, Likelihood: bayes.Gaussian{StdDev: 1},
		Stochastic: bayes.Names("phi0", "phi1")})
	trainer := model
	settings := Settings{Particles: 10, BatchSize: 5, Epochs: 2, Engine: engine}
	psi := func(p *bayes.Posterior) float64 {
		value, _, err := p.Parameter("psi less 0.1")
		if err != nil {
			t.Fatal(err)
		}
		return value[0]
	}
	plain, err := Fit(t.Context(), trainer, nil, dataset.Parts{Train: data}, settings)
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
		result, err := Fit(t.Context(), trainer, nil, dataset.Parts{Train: data}, settings)
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
	if _, err := Fit(t.Context(), trainer, nil, dataset.Parts{Train: data}, settings); !errors.Is(err, fault) {
		t.Errorf("error %v, want the observer's", err)
	}
	settings.ObserveEvery = -1
	if _, err := Fit(t.Context(), trainer, nil, dataset.Parts{Train: data},
		settings); err == nil || !strings.Contains(err.Error(), "ObserveEvery") {
		t.Errorf("error %v, want one that names ObserveEvery", err)
	}
}

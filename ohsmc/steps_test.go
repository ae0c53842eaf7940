package ohsmc

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// Steps makes the same steps as Fit: as a whole, left and gone on with from its checkpoint, and looked at once it is
// finished. On the way it shows psi, the step's record, and the posterior of the particles.
func TestSteps(t *testing.T) {
	parts, err := dataset.Yacht().Split(dataset.Fractions{Train: .2, Validation: .2, Test: .6}, 1)
	if err != nil {
		t.Fatal(err)
	}
	model := bayes.Model{Network: nn.MLP{Hidden: []int{4}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .5},
		Stochastic: bayes.Layers(2)}
	settings := Settings{Particles: 30, BatchSize: 20, Epochs: 4, Seed: 3, Engine: computetest.Go(t)}
	want, err := Fit(t.Context(), model, nil, parts, settings)
	if err != nil {
		t.Fatal(err)
	}
	flat := func(p *bayes.Posterior) []float64 {
		values, _, err := p.Parameter("layer2/weights")
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	same := func(what string, now *Position) {
		t.Helper()
		got, err := now.Result()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(flat(got.Posterior), flat(want.Posterior)) || got.Best != want.Best ||
			got.Trace[0].Loss != want.Trace[0].Loss || !slices.Equal(got.Validated, want.Validated) || got.Status !=
			run.Completed || got.Steps != want.Steps {
			t.Errorf("%s: %s after %d steps, best %+v; Fit's %+v", what, got.Status, got.Steps, got.Best, want.Best)
		}
	}
	steps, best, before := 0, []float64(nil), []float64(nil)
	for now, err := range Steps(t.Context(), model, nil, parts, settings) {
		if err != nil {
			t.Fatal(err)
		}
		psi, err := now.Psi()
		if err != nil {
			t.Fatal(err)
		}
		p, err := now.Posterior()
		if err != nil {
			t.Fatal(err)
		}
		if steps++; len(psi) != p.Bound().W || slices.Equal(psi, before) || now.Record().Loss != want.Trace[steps-1].Loss {
			t.Fatalf("step %d: psi %v after %v, record %+v", steps, psi, before, now.Record())
		}
		if before = psi; steps == want.Best.Step {
			best = flat(p)
		}
		if steps == want.Steps {
			same("Steps", now)
		}
	}
	if steps != want.Steps || !slices.Equal(best, flat(want.Posterior)) {
		t.Errorf("%d steps; the posterior of step %d is not Fit's", steps, want.Best.Step)
	}

	settings.Checkpoint = filepath.Join(t.TempDir(), "training")
	for now, err := range Steps(t.Context(), model, nil, parts, settings) {
		if err != nil {
			t.Fatal(err)
		}
		result, err := now.Result()
		if err != nil {
			t.Fatal(err)
		}
		clear(result.Trace) // the run has its own
		clear(result.Validated)
		if now.Step == 3 {
			break
		}
	}
	for range 2 { // the rest, then a look at what is finished
		last := (*Position)(nil)
		for now, err := range Steps(t.Context(), model, nil, parts, settings) {
			if err != nil || now.Step <= 3 {
				t.Fatalf("resumed: %+v, error %v", now, err)
			}
			if last = now; now.Step == want.Steps {
				same("resumed", now)
			}
		}
		if last == nil || last.Step != want.Steps {
			t.Errorf("the resumed loop ends at %+v", last)
		}
	}
	settings.Particles = -1
	told := 0
	for now, err := range Steps(t.Context(), model, nil, parts, settings) {
		if told++; now != nil || err == nil || !strings.Contains(err.Error(), "Particles is -1") {
			t.Errorf("%v, error %v", now, err)
		}
	}
	if told != 1 {
		t.Errorf("an error was yielded %d times", told)
	}
}

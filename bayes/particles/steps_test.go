package particles_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/ohsmc"
)

// Steps makes the same steps as Fit: as a whole, left and gone on with from its checkpoint, and looked at once it is
// finished. On the way it shows the posterior of the particles.
func TestSteps(t *testing.T) {
	parts, err := dataset.Yacht().Split(dataset.Fractions{Train: .2, Validation: .2, Test: .6}, 1)
	if err != nil {
		t.Fatal(err)
	}
	model := bayes.Model{Network: nn.MLP{Hidden: []int{4}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .5},
		Stochastic: bayes.Layers(2)}
	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 30, BatchSize: 20, Epochs: 4, ValidateEvery: 1}}
	settings := run.Settings{Seed: 3, Engine: computetest.Go(t)}
	want, err := tried(t.Context(), model, method, parts, settings)
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
	steps, best, before := 0, []float64(nil), []float64(nil)
	for now, err := range fit.Steps(t.Context(), model, method, parts, settings) {
		if err != nil {
			t.Fatal(err)
		}
		found, err := now.Now()
		if err != nil {
			t.Fatal(err)
		}
		p := found.Posterior
		if now.Result != nil {
			got := fit.Details[*particles.Details](now.Result)
			if !slices.Equal(flat(p), flat(want.Posterior)) || got.Best != want.Best || got.Steps != want.Steps ||
				got.Trace[0].Loss != want.Trace[0].Loss || !slices.Equal(got.Validated, want.Validated) ||
				now.Result.Status != run.Completed {
				t.Errorf("%s after %d steps, best %+v; Fit's %+v", now.Result.Status, got.Steps, got.Best, want.Best)
			}
			continue
		}
		steps++
		if slices.Equal(flat(p), before) || now.Score(fit.LossCurve) != want.Trace[steps-1].Loss || now.Step != steps {
			t.Fatalf("step %d: %+v", steps, now)
		}
		if before = flat(p); steps == want.Best.Step {
			best = before
		}
	}
	if steps != want.Steps || !slices.Equal(best, flat(want.Posterior)) {
		t.Errorf("%d steps; the posterior of step %d is not Fit's", steps, want.Best.Step)
	}

	settings.Checkpoint = filepath.Join(t.TempDir(), "training")
	for now, err := range fit.Steps(t.Context(), model, method, parts, settings) {
		if err != nil {
			t.Fatal(err)
		}
		if now.Step == 3 {
			break
		}
	}
	for range 2 { // the rest, then a look at what is finished
		var last *fit.Result
		for now, err := range fit.Steps(t.Context(), model, method, parts, settings) {
			if err != nil || now.Result == nil && now.Step <= 3 {
				t.Fatalf("resumed: %+v, error %v", now, err)
			}
			last = now.Result
		}
		if last == nil || !slices.Equal(flat(last.Posterior), flat(want.Posterior)) {
			t.Errorf("the resumed loop ends at %+v", last)
		}
	}
	method.Particles = -1
	told := 0
	for now, err := range fit.Steps(t.Context(), model, method, parts, settings) {
		if told++; now.Result != nil || err == nil || !strings.Contains(err.Error(), "Particles is -1") {
			t.Errorf("%v, error %v", now, err)
		}
	}
	if told != 1 {
		t.Errorf("an error was yielded %d times", told)
	}
}

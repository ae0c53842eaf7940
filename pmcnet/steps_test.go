package pmcnet_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/run"
	"gobnn/pmcnet"
)

// A loop of one's own over the iterations comes to the bits of Fit, and of Sample, with each iteration's record and
// result on the way; left early, it leaves a checkpoint from which Fit goes on.
func TestSteps(t *testing.T) {
	model, parts, _ := line(t)
	trainer := pmcnet.NewTrainer(model)
	defer trainer.Close()
	a := pmcnet.PMC{Proposals: 5, Draws: 20, Iterations: 4, Start: pmcnet.FromPrior, StdDev: .5}
	settings := goSettings(t)
	whole, err := trainer.Fit(t.Context(), a, parts, settings)
	if err != nil {
		t.Fatal(err)
	}
	settings.Checkpoint = filepath.Join(t.TempDir(), "run")
	ess := func(r *pmcnet.Result) (out []float64) {
		for _, i := range r.Trace {
			out = append(out, i.ESS)
		}
		return out
	}
	var seen []float64
	for at, err := range trainer.Steps(t.Context(), a, parts, settings) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := at.Result()
		if err != nil || r.Posterior == nil || r.Posterior.Particles() != 100 || len(r.Trace) != at.Step || r.Status != "" ||
			r.Elapsed < at.Elapsed || at.Elapsed == 0 {
			t.Fatalf("iteration %d: %v, %+v", at.Step, err, r)
		}
		clear(r.Trace) // the run has its own
		if seen = append(seen, at.ESS); at.Step == 2 {
			break
		}
	}
	r, err := trainer.Fit(t.Context(), a, parts, settings)
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != 2 || !slices.Equal(ess(r), ess(whole)) || !slices.Equal(seen, ess(whole)[:2]) ||
		!slices.Equal(numbers(t, r.Posterior), numbers(t, whole.Posterior)) {
		t.Errorf("effective sample sizes %v and %v, of Fit %v", seen, ess(r), ess(whole))
	}
	last := (*pmcnet.Position)(nil)
	for at, err := range pmcnet.Steps(t.Context(), model, a, parts, settings) { // finished: once
		if last = at; err != nil {
			t.Fatal(err)
		}
	}
	if r, err := last.Result(); err != nil || r.Status != run.Completed || r.Evidence != whole.Evidence {
		t.Errorf("a finished run: %v, %+v", err, r)
	}

	sampler := pmcnet.Sampler{Problem: problem(regression(2, 10, 1))}
	defer sampler.Close()
	settings.Checkpoint = ""
	sampled, err := sampler.Sample(t.Context(), a, settings)
	if err != nil {
		t.Fatal(err)
	}
	var end bayes.Evidence
	var phi []float64
	for at, err := range sampler.Steps(t.Context(), a, settings) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := at.Result()
		if err != nil || r.Posterior != nil {
			t.Fatal(err)
		}
		end.Value = at.LogEvidence
		if phi, err = compute.Float64s(r.Phi); err != nil {
			t.Fatal(err)
		}
	}
	want, err := compute.Float64s(sampled.Phi)
	if err != nil || !slices.Equal(phi, want) || end.Value != sampled.Trace[3].LogEvidence {
		t.Errorf("%v, log evidence %v and %v", err, end.Value, sampled.Trace[3].LogEvidence)
	}
	for at, err := range sampler.Steps(t.Context(), pmcnet.PMC{Draws: -1}, settings) {
		if at != nil {
			t.Error("a position of a run that cannot begin")
		}
		says(t, "no draws", err, "PMC.Draws", "-1")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for at, err := range sampler.Steps(ctx, a, settings) {
		if err == nil {
			_, err = at.Result()
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before the first iteration: %v", err)
		}
	}
}

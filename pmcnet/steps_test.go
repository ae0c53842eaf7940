package pmcnet_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/pmcnet"
)

// A loop of one's own over the iterations comes to the bits of fit.Fit, with each iteration's record and result on the
// way; left early, it leaves a checkpoint from which Fit goes on.
func TestSteps(t *testing.T) {
	model, parts, _ := line(t)
	a := pmcnet.PMC{Proposals: 5, Draws: 20, Iterations: 4, Start: pmcnet.FromPrior, StdDev: .5}
	settings := goSettings(t)
	whole, err := fitted(t.Context(), model, a, parts, settings)
	if err != nil {
		t.Fatal(err)
	}
	settings.Checkpoint = filepath.Join(t.TempDir(), "run")
	ess := func(r *found) (out []float64) {
		for _, i := range r.Trace {
			out = append(out, i.ESS)
		}
		return out
	}
	var seen []float64
	for at, err := range fit.Steps(t.Context(), model, a, parts, settings) {
		if err != nil {
			t.Fatal(err)
		}
		if at.Step == 0 { // before the first iteration
			if _, err := at.Now(); err == nil {
				t.Error("a result without draws")
			}
			continue
		}
		r, err := find(at.Now())
		if err != nil || r.Posterior == nil || r.Posterior.Particles() != 100 || len(r.Trace) != at.Step || r.Status != "" ||
			r.Elapsed < at.Elapsed || at.Elapsed == 0 {
			t.Fatalf("iteration %d: %v, %+v", at.Step, err, r)
		}
		seen = append(seen, r.Trace[at.Step-1].ESS)
		clear(r.Trace) // the run has its own
		if at.Step == 2 {
			break
		}
	}
	r, err := fitted(t.Context(), model, a, parts, settings)
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != 2 || !slices.Equal(ess(r), ess(whole)) || !slices.Equal(seen, ess(whole)[:2]) ||
		!slices.Equal(numbers(t, r.Posterior), numbers(t, whole.Posterior)) {
		t.Errorf("effective sample sizes %v and %v, of Fit %v", seen, ess(r), ess(whole))
	}
	var last *fit.Result
	for at, err := range fit.Steps(t.Context(), model, a, parts, settings) { // finished
		if last = at.Result; err != nil {
			t.Fatal(err)
		}
	}
	if last == nil || last.Status != run.Completed || last.Draws.Evidence != whole.Evidence {
		t.Errorf("a finished run: %+v", last)
	}

	settings.Checkpoint = ""
	for at, err := range fit.SampleSteps(t.Context(), problem(regression(2, 10, 1)), pmcnet.PMC{Draws: -1}, settings) {
		if at.Result != nil {
			t.Error("a result of a run that cannot begin")
		}
		says(t, "no draws", err, "PMC.Draws", "-1")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("no time")
	cancel(cause)
	if r, err := fit.Sample(ctx, problem(regression(2, 10, 1)), a, settings); r != nil || !errors.Is(err, cause) {
		t.Errorf("cancelled before the first iteration: %v", err)
	}
}

package fbnn

import (
	"context"
	"errors"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/run"
)

// found is a result with its details.
type found struct {
	*fit.Result
	*Details
}

// fitted is fit.Fit. An error fails the test.
func fitted(
	t testing.TB, model bayes.Model, method fit.Method, parts dataset.Parts, settings run.Settings,
) *found {
	t.Helper()
	r, d := fittest.Fit[*Details](t, model, method, parts, settings)
	return &found{r, d}
}

// held is a method that hands over its job before its first step.
type held struct {
	fit.Method
	job **fit.Job
}

func (h held) Prepare(j *fit.Job) (fit.Method, error) {
	_, err := h.Method.Prepare(j)
	return h, err
}

func (h held) Takes() fit.Takes { return h.Method.(fit.Taker).Takes() }

var errHeld = errors.New("held")

func (h held) Run(_ context.Context, j *fit.Job) (*fit.Result, error) {
	*h.job = j
	return nil, errHeld
}

// jobOf is the job of a method, with its settings filled in, before its first step.
func jobOf(
	t testing.TB, model bayes.Model, method fit.Method, parts dataset.Parts, settings run.Settings,
) (*fit.Job, fit.Method) {
	t.Helper()
	var j *fit.Job
	if _, err := fit.Fit(t.Context(), model, held{method, &j}, parts, settings); !errors.Is(err, errHeld) {
		t.Fatal(err)
	}
	prepared, err := method.Prepare(j)
	if err != nil {
		t.Fatal(err)
	}
	return j, prepared
}

// begun is a run of CES before its first step.
func begun(t testing.TB, model bayes.Model, a CES, parts dataset.Parts, settings run.Settings) *ces {
	t.Helper()
	j, prepared := jobOf(t, model, a, parts, settings)
	r, err := newCES(prepared.(CES), j)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.truth.Close)
	return r
}

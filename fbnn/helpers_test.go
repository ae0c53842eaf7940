package fbnn

import (
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

// begun is a run of CES before its first step.
func begun(t testing.TB, model bayes.Model, a CES, parts dataset.Parts, settings run.Settings) *ces {
	t.Helper()
	j, prepared := fittest.Job(t, model, a, parts, settings)
	r, err := newCES(prepared, j)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.truth.Close)
	return r
}

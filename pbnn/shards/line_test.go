package shards

import (
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/pbnn"
)

const noiseStdDev = .6

// line is conjugate.
var line = fittest.Line(noiseStdDev)

// result is a run's result with its details.
type result struct {
	*fit.Result
	*pbnn.Details
	chains *mcmc.Details
}

// over is fit.Fit over shards.
func over(t testing.TB, model bayes.Model, m pbnn.Metropolis, shards []Shard, s run.Settings) (*result, error) {
	t.Helper()
	r, err := fit.Fit(t.Context(), model, Metropolis{Metropolis: m, Shards: shards}, dataset.Parts{}, s)
	if r == nil {
		return nil, err
	}
	return &result{r, fit.Details[*pbnn.Details](r), fit.Details[*mcmc.Details](r)}, err
}

package shards

import (
	"context"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/pbnn"
)

// Settings are a sampler's and its run's in one, as the tests of this package write them.
type Settings struct {
	Chains, Draws, WarmUp int

	Seed       uint64
	DType      compute.DType
	Engine     *compute.Engine
	Checkpoint string
}

func (s Settings) run() run.Settings {
	return run.Settings{Seed: s.Seed, DType: s.DType, Engine: s.Engine, Checkpoint: s.Checkpoint}
}

func (s Settings) over(shards []Shard, m pbnn.Metropolis) Metropolis {
	m.Sampling = pbnn.Sampling{Chains: s.Chains, Draws: s.Draws, WarmUp: s.WarmUp}
	return Metropolis{Metropolis: m, Shards: shards}
}

// Result is a run's result with its details.
type Result struct {
	*fit.Result
	*pbnn.Details
	Chains *mcmc.Details
}

// Fit is fit.Fit over shards.
func Fit(ctx context.Context, model bayes.Model, m pbnn.Metropolis, shards []Shard, s Settings) (*Result, error) {
	r, err := fit.Fit(ctx, model, s.over(shards, m), dataset.Parts{}, s.run())
	if r == nil {
		return nil, err
	}
	return &Result{r, fit.Details[*pbnn.Details](r), fit.Details[*mcmc.Details](r)}, err
}

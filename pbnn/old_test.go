package pbnn

import (
	"context"
	"reflect"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
)

// Settings are a sampler's and its run's in one, as the tests of this package write them.
type Settings struct {
	Chains, Draws, Thin, WarmUp int

	Seed         uint64
	DType        compute.DType
	Engine       *compute.Engine
	Devices      int
	Checkpoint   string
	Progress     func(run.Progress)
	Observe      func(step int, now *bayes.Posterior) error
	ObserveEvery int
}

func (s Settings) run() run.Settings {
	return run.Settings{
		Seed: s.Seed, DType: s.DType, Engine: s.Engine, Devices: s.Devices, Checkpoint: s.Checkpoint,
		Progress: s.Progress, Observe: s.Observe, ObserveEvery: s.ObserveEvery,
	}
}

// with is a sampler with these settings.
func (s Settings) with(sampler Sampler) Sampler {
	v := reflect.New(reflect.TypeOf(sampler)).Elem()
	v.Set(reflect.ValueOf(sampler))
	v.FieldByName("Sampling").Set(reflect.ValueOf(Sampling{s.Chains, s.Draws, s.Thin, s.WarmUp}))
	return v.Interface().(Sampler)
}

// Result is a run's result with its details.
type Result struct {
	*fit.Result
	*Details
	Chains *mcmc.Details
}

// Target is what the sampler sampled.
func (r *Result) Target() Target {
	return reflect.ValueOf(r.Sampler).FieldByName("Target").Interface().(Target)
}

// Fit is fit.Fit for a sampler of this package.
func Fit(
	ctx context.Context, model bayes.Model, sampler Sampler, parts dataset.Parts, s Settings,
) (*Result, error) {
	return resultOf(fit.Fit(ctx, model, s.with(sampler), parts, s.run()))
}

// FitFrom is Fit from a trained posterior.
func FitFrom(
	ctx context.Context, trained *bayes.Posterior, sampler Sampler, parts dataset.Parts, s Settings,
) (*Result, error) {
	return resultOf(fit.Fit(ctx, bayes.Model{}, fit.From{Trained: trained, Method: s.with(sampler)}, parts, s.run()))
}

func resultOf(r *fit.Result, err error) (*Result, error) {
	if r == nil {
		return nil, err
	}
	return &Result{r, fit.Details[*Details](r), fit.Details[*mcmc.Details](r)}, err
}

// points is the number of points that a sampler's target counts for, given data of N rows.
func points(sampler Sampler, rows int) float64 {
	v := reflect.ValueOf(sampler)
	target := v.FieldByName("Target").Interface().(Target)
	if of, ok := target.(FromMiniBatches); ok {
		target = of.ForBatchSize(int(v.FieldByName("BatchSize").Int()))
	}
	return target.EffectivePoints(rows)
}

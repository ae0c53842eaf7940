package ohsmc

import (
	"cmp"
	"context"
	"reflect"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/bayes/train"
)

// Settings are a training's and its run's in one, as the tests of this package write them.
type Settings struct {
	Particles, BatchSize, Epochs int
	Resampler                    smc.Resampler
	Threshold                    float64
	Optimiser                    train.Adam
	ValidateEvery, Patience      int
	Chunk                        int

	Seed            uint64
	DType           compute.DType
	Engine          *compute.Engine
	Devices         int
	Checkpoint      string
	CheckpointEvery time.Duration
	Replace         bool
	Progress        func(run.Progress)
	Observe         func(step int, now *bayes.Posterior) error
	ObserveEvery    int
}

// training validates after each step to the end, unless it is told otherwise.
func (s Settings) training() Training {
	return Training{
		Particles: s.Particles, BatchSize: s.BatchSize, Epochs: s.Epochs, Resampler: s.Resampler, Threshold: s.Threshold,
		Optimiser: s.Optimiser, ValidateEvery: cmp.Or(s.ValidateEvery, 1), Patience: cmp.Or(s.Patience, 1<<20),
		Chunk: s.Chunk,
	}
}

func (s Settings) run() run.Settings {
	return run.Settings{
		Seed: s.Seed, DType: s.DType, Engine: s.Engine, Devices: s.Devices, Checkpoint: s.Checkpoint,
		CheckpointEvery: s.CheckpointEvery, Replace: s.Replace, Progress: s.Progress, Observe: s.Observe,
		ObserveEvery: s.ObserveEvery,
	}
}

// Result is a run's result with its details.
type Result struct {
	*fit.Result
	*Details
}

// with is an algorithm with these settings; nil stands for OpenHorizon{}.
func with(a fit.Method, t Training) fit.Method {
	if a == nil {
		a = OpenHorizon{}
	}
	v := reflect.New(reflect.TypeOf(a)).Elem()
	v.Set(reflect.ValueOf(a))
	v.FieldByName("Training").Set(reflect.ValueOf(t))
	return v.Interface().(fit.Method)
}

// trainingOf are the settings that an algorithm has in common with all.
func trainingOf(a fit.Method) Training {
	return reflect.ValueOf(a).FieldByName("Training").Interface().(Training)
}

// Fit is fit.Fit for an algorithm of this package.
func Fit(
	ctx context.Context, model bayes.Model, a fit.Method, parts dataset.Parts, s Settings,
) (*Result, error) {
	r, err := fit.Fit(ctx, model, with(a, s.training()), parts, s.run())
	if r == nil {
		return nil, err
	}
	return &Result{r, fit.Details[*Details](r)}, err
}

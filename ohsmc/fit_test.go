package ohsmc

import (
	"cmp"
	"context"
	"reflect"
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
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
func (s Settings) training() particles.Training {
	return particles.Training{
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
	*particles.Details
}

// with is an algorithm with these settings; nil stands for OpenHorizon{}.
func with(a fit.Method, t particles.Training) fit.Method {
	if a == nil {
		a = OpenHorizon{}
	}
	v := reflect.New(reflect.TypeOf(a)).Elem()
	v.Set(reflect.ValueOf(a))
	v.FieldByName("Training").Set(reflect.ValueOf(t))
	return v.Interface().(fit.Method)
}

// trainingOf are the settings that an algorithm has in common with all.
func trainingOf(a fit.Method) particles.Training {
	return reflect.ValueOf(a).FieldByName("Training").Interface().(particles.Training)
}

// Fit is fit.Fit for an algorithm of this package.
func Fit(
	ctx context.Context, model bayes.Model, a fit.Method, parts dataset.Parts, s Settings,
) (*Result, error) {
	r, err := fit.Fit(ctx, model, with(a, s.training()), parts, s.run())
	if r == nil {
		return nil, err
	}
	return &Result{r, fit.Details[*particles.Details](r)}, err
}

// small is a partial network that trains in a moment.
var small = bayes.Model{Network: nn.MLP{Hidden: []int{5, 3}, Activation: nn.GELU}, Likelihood: bayes.Gaussian{},
	Stochastic: bayes.Layers(2)}

func parts(t testing.TB) dataset.Parts {
	t.Helper()
	p, err := linear(60).Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// numbers are all parameters and log-weights of a posterior.
func numbers(t testing.TB, p *bayes.Posterior) []float64 {
	t.Helper()
	var all []float64
	for _, slot := range p.Bound().Slots {
		v, _, err := p.Parameter(slot.Name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v...)
	}
	for j := range p.Particles() {
		all = append(all, p.LogWeights().At(j))
	}
	return all
}

package mcmc

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
)

// Settings are a method's and its run's in one, as the tests of this package write them.
type Settings struct {
	Chains int    // J; default 4
	Draws  int    // kept for each chain; default 1000
	Thin   int    // keep each Thin-th transition; default 1
	Seed   uint64 // of everything random

	WarmUp     int
	FixedScale bool
	Tuned      Tuned

	DType   compute.DType   // default compute.Float32
	Engine  *compute.Engine // default compute.Default
	Devices int

	Checkpoint      string
	CheckpointEvery time.Duration
	Replace         bool
	Progress        func(run.Progress)
}

func (s Settings) apart(kernel Kernel) (Chains, run.Settings) {
	return Chains{
			Kernel: kernel, Chains: s.Chains, Draws: s.Draws, Thin: s.Thin, WarmUp: s.WarmUp, FixedScale: s.FixedScale,
			Tuned: s.Tuned,
		}, run.Settings{
			Seed: s.Seed, DType: s.DType, Engine: s.Engine, Devices: s.Devices, Checkpoint: s.Checkpoint,
			CheckpointEvery: s.CheckpointEvery, Replace: s.Replace, Progress: s.Progress,
		}
}

// Result is a run's result with its details.
type Result struct {
	*Details
	Status   run.Status
	Elapsed  time.Duration
	Warnings []string
}

// resultOf is nil if there is none.
func resultOf(r *fit.Result) *Result {
	if r == nil {
		return nil
	}
	return &Result{fit.Details[*Details](r), r.Status, r.Elapsed, r.Warnings}
}

// Sample is fit.Sample with Chains. A run that is cancelled before it has draws has an empty result.
func Sample(ctx context.Context, problem density.Problem, kernel Kernel, s Settings) (*Result, error) {
	chains, settings := s.apart(kernel)
	result, err := fit.Sample(ctx, problem, chains, settings)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) && result == nil {
		none := &Details{Draws: newDraws(cmp.Or(s.Chains, 4), 0, problem.Dim, s.DType)}
		return &Result{Details: none, Status: run.Cancelled}, nil
	}
	return resultOf(result), err
}

// Sampler samples one problem repeatedly, and compiles it once.
type Sampler struct {
	Problem density.Problem
	Kernel  Kernel
	number  uint64
}

var samplers atomic.Uint64

// keyed is the sampler's problem, told apart from those of others.
func (s *Sampler) keyed() density.Problem {
	if s.number == 0 {
		s.number = samplers.Add(1)
	}
	return s.Problem.Keyed("test", s.number)
}

func (s *Sampler) Sample(ctx context.Context, settings Settings) (*Result, error) {
	return Sample(ctx, s.keyed(), s.Kernel, settings)
}

// looked is Chains whose run a test looks at, or changes, before its first step.
type looked struct {
	Chains
	at func(r *sampling, l *fit.Loop[struct{}])
}

func (k looked) Prepare(j *fit.Job) (fit.Method, error) {
	prepared, err := k.Chains.Prepare(j)
	if err == nil {
		k.Chains = prepared.(Chains)
	}
	return k, err
}

func (k looked) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	problem, err := j.Density(k.Chains.Chains)
	if err != nil {
		return nil, err
	}
	r := newSampling(j, k.Chains, problem)
	l := r.loop()
	k.at(r, l)
	return l.Run(ctx, j)
}

var errEnough = errors.New("enough")

package smc_test

import (
	"context"
	"sync/atomic"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/tensors"
)

// setup has a method's and its run's settings in one, as the tests of this package write them.
type setup struct {
	Particles        int
	Ladder           []float64
	Threshold        float64
	WasteFree, Moves int

	Seed            uint64
	DType           compute.DType
	Engine          *compute.Engine
	Devices         int
	Checkpoint      string
	CheckpointEvery time.Duration
	Progress        func(run.Progress)
}

// outcome is a run's result with its details.
type outcome struct {
	*fit.Result
	*smc.Details
	Phi                            *tensors.Tensor
	LogWeights                     bayes.LogWeights
	LogEvidence, LogEvidenceStdErr float64
}

func draw(ctx context.Context, problem density.Problem, kernel mcmc.Kernel, s setup) (*outcome, error) {
	r, err := fit.Sample(ctx, problem, smc.Tempered{
		Kernel: kernel, Particles: s.Particles, Ladder: s.Ladder, Threshold: s.Threshold,
		WasteFree: s.WasteFree, Moves: s.Moves,
	}, run.Settings{
		Seed: s.Seed, DType: s.DType, Engine: s.Engine, Devices: s.Devices, Checkpoint: s.Checkpoint,
		CheckpointEvery: s.CheckpointEvery, Progress: s.Progress,
	})
	if r == nil {
		return nil, err
	}
	weights, failed := bayes.NewLogWeights(r.Draws.LogWeights)
	if failed != nil {
		return nil, failed
	}
	return &outcome{
		Result: r, Details: fit.Details[*smc.Details](r), Phi: r.Draws.Phi, LogWeights: weights,
		LogEvidence: r.Draws.Evidence.Value, LogEvidenceStdErr: r.Draws.Evidence.StdErr,
	}, err
}

// reused samples one problem repeatedly, and compiles it once.
type reused struct {
	Problem density.Problem
	Kernel  mcmc.Kernel
	number  uint64
}

var samplers atomic.Uint64

func (r *reused) Sample(ctx context.Context, s setup) (*outcome, error) {
	if r.number == 0 {
		r.number = samplers.Add(1)
	}
	problem := r.Problem
	if problem.ProgramKey() == "" {
		problem = problem.Keyed("test", r.number)
	}
	return draw(ctx, problem, r.Kernel, s)
}

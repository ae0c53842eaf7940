package smc

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
)

// Settings of Sample. The zero value of every field works.
type Settings struct {
	Particles int    // J, at least 2; default 1000
	Seed      uint64 // of everything random

	Tempering Tempering // default LikelihoodTempering
	Ladder    []float64
	Block     int
	Threshold float64
	Resampler Resampler
	WasteFree int
	Moves     int

	DType   compute.DType   // default compute.Float32
	Engine  *compute.Engine // default compute.Default
	Devices int

	Checkpoint      string
	CheckpointEvery time.Duration
	Replace         bool
	Progress        func(run.Progress) `json:"-"`
}

// Result of Sample.
type Result struct {
	Phi                            *tensors.Tensor
	LogWeights                     bayes.LogWeights
	LogEvidence, LogEvidenceStdErr float64
	Status                         run.Status
	Elapsed                        time.Duration
	Warnings                       []string
	Details
}

// DefaultKernel is HMC, with step size, scales and trajectories chosen from the particles.
func DefaultKernel() mcmc.Kernel { return mcmc.HMC{} }

func (s Settings) method(kernel mcmc.Kernel) Tempered {
	return Tempered{
		Kernel: kernel, Particles: s.Particles, Tempering: s.Tempering, Ladder: s.Ladder, Block: s.Block,
		Threshold: s.Threshold, Resampler: s.Resampler, WasteFree: s.WasteFree, Moves: s.Moves,
	}
}

func (s Settings) run() run.Settings {
	return run.Settings{
		Seed: s.Seed, DType: s.DType, Engine: s.Engine, Devices: s.Devices, Checkpoint: s.Checkpoint,
		CheckpointEvery: s.CheckpointEvery, Replace: s.Replace, Progress: s.Progress,
	}
}

// WithDefaults returns the settings with defaults in place of zeros.
func (s Settings) WithDefaults() (Settings, error) {
	if s.Devices == 0 {
		s.Devices = 1
	}
	if s.DType == 0 {
		s.DType = compute.Float32
	}
	prepared, err := s.method(mcmc.HMC{}).Prepare(&fit.Job{Settings: s.run(), Data: &fit.Data{Bound: &bayes.BoundModel{D: 1}}})
	if err != nil {
		return s, err
	}
	t := prepared.(Tempered)
	s.Particles, s.Tempering, s.Ladder, s.Block, s.Threshold = t.Particles, t.Tempering, t.Ladder, t.Block, t.Threshold
	s.Resampler, s.WasteFree, s.Moves = t.Resampler, t.WasteFree, t.Moves
	return s, nil
}

// Within returns the settings of a sampler that is a part of a larger algorithm, whose own are outer.
func (s Settings) Within(owner string, outer Settings) (Settings, error) {
	elsewhere := func(field string, value any, unset bool) limits.Limit {
		return limits.Field("Sampling."+field, value, unset,
			fmt.Sprintf("left out: set Settings.%s, which holds for all of the algorithm", field))
	}
	if err := limits.Check(owner,
		elsewhere("Seed", s.Seed, s.Seed == 0),
		elsewhere("DType", s.DType, s.DType == 0),
		elsewhere("Engine", s.Engine, s.Engine == nil),
		elsewhere("Checkpoint", s.Checkpoint, s.Checkpoint == ""),
		elsewhere("CheckpointEvery", s.CheckpointEvery, s.CheckpointEvery == 0),
		elsewhere("Replace", s.Replace, !s.Replace),
		elsewhere("Progress", "set", s.Progress == nil),
	); err != nil {
		return s, err
	}
	s.Seed, s.DType, s.Engine, s.Progress = outer.Seed, outer.DType, outer.Engine, outer.Progress
	s.Checkpoint, s.CheckpointEvery, s.Replace = outer.Checkpoint, outer.CheckpointEvery, outer.Replace
	s, err := s.WithDefaults()
	if err != nil {
		return s, fmt.Errorf("%s.Sampling: %w", owner, err)
	}
	return s, nil
}

// Record returns the settings that determine the result, without the seed: for checkpoints and provenance.
func (s Settings) Record() map[string]any {
	return map[string]any{
		"particles": s.Particles, "tempering": s.Tempering, "ladder": s.Ladder, "block": s.Block, "threshold": s.Threshold,
		"resampler": s.Resampler, "waste_free": s.WasteFree, "moves": s.Moves, "dtype": s.DType.String(),
		"devices": s.Devices,
	}
}

// Sample is fit.Sample with Tempered.
func Sample(ctx context.Context, problem density.Problem, kernel mcmc.Kernel, s Settings) (*Result, error) {
	if kernel == nil {
		return nil, mcmc.Check(nil, 1, true)
	}
	found, err := fit.Sample(ctx, problem, s.method(kernel), s.run())
	if found == nil {
		return nil, err
	}
	weights, failed := bayes.NewLogWeights(found.Draws.LogWeights)
	if failed != nil {
		return nil, failed
	}
	return &Result{
		Phi: found.Draws.Phi, LogWeights: weights, LogEvidence: found.Draws.Evidence.Value,
		LogEvidenceStdErr: found.Draws.Evidence.StdErr, Status: found.Status, Elapsed: found.Elapsed,
		Warnings: found.Warnings, Details: *fit.Details[*Details](found),
	}, err
}

// Sampler samples repeatedly, and compiles once.
type Sampler struct {
	Problem density.Problem
	Kernel  mcmc.Kernel
	number  uint64
}

var samplers atomic.Uint64

// Close does nothing.
func (s *Sampler) Close() {}

// Sample is the function Sample with the sampler's problem and kernel.
func (s *Sampler) Sample(ctx context.Context, settings Settings) (*Result, error) {
	if s.number == 0 {
		s.number = samplers.Add(1)
	}
	problem := s.Problem
	if problem.ProgramKey() == "" {
		problem = problem.Keyed("smc.Sampler", s.number)
	}
	return Sample(ctx, problem, s.Kernel, settings)
}

package mcmc

import (
	"cmp"
	"context"
	"errors"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
)

// Settings of Sample. The zero value of every field works.
type Settings struct {
	Chains int    // J; default 4
	Draws  int    // kept for each chain; default 1000
	Thin   int    // keep each Thin-th transition; default 1
	Seed   uint64 // of everything random

	// WarmUp is the number of transitions of each chain before the draws; they are discarded. Default 1000; NoWarmUp:
	// none. For a Tunable kernel whose own step size is 0 the warm-up chooses the scales of the coordinates, roughly the
	// target's standard deviations, and one step size for all chains, in units of these scales.
	WarmUp int
	// FixedScale makes the warm-up choose the step size only, not the scales.
	FixedScale bool
	// Tuned are the step size and scales at which a warm-up that chooses them begins; without such a warm-up the draws are
	// made with them. They may be the Tuned of another Result. Default: the kernel's own step size, and scales of 1.
	Tuned Tuned

	DType  compute.DType   // default compute.Float32
	Engine *compute.Engine // default compute.Default
	// Devices is the number of the engine's devices that share the chains, in parts of equal size; default 1. The draws
	// depend on it by rounding only; a checkpoint needs the same number of devices. A Target that evaluates the chains
	// in blocks must divide them such that no block is on two devices, as density.NewProblem does if it is given their
	// number: otherwise each block is computed by one device while the others wait.
	Devices int

	// Checkpoint is a file that holds the whole state of the run. It is written every CheckpointEvery (default 30 s), when
	// the context is cancelled (run.Context is, by Ctrl-C) and at the end. If it exists, Sample resumes from it, with
	// draws bit for bit those of an uninterrupted run; a file of another problem, kernel, seed or settings is an error.
	Checkpoint      string
	CheckpointEvery time.Duration
	// Replace begins anew if the checkpoint is of another run, of an older format or damaged, and overwrites it.
	Replace bool
	// Progress, if set, is called after a move, at most ten times a second, and at the end. Its stages are the
	// "warm-up", whose steps are transitions, and the "draws", of all chains together; it scores the "acceptance",
	// which is the last transition's in the warm-up and then the mean, the "step size" and the "divergences", as far as
	// the kernel has them.
	Progress func(run.Progress)
	// Observe, if set, is called each time that all chains have ObserveEvery more draws (default: a tenth of Draws, at
	// least one), but not for draws made before a resume. Its arguments are the number of draws of each chain and all
	// draws, which may be kept but not changed. An error ends the run, with the status run.Stopped and the draws so far,
	// to which a checkpoint adds those that the device has made ahead.
	Observe      func(draws int, now *Draws) error `json:"-"`
	ObserveEvery int
}

func (s Settings) apart(kernel Kernel) (Chains, run.Settings) {
	return Chains{
			Kernel: kernel, Chains: s.Chains, Draws: s.Draws, Thin: s.Thin, WarmUp: s.WarmUp, FixedScale: s.FixedScale,
			Tuned: s.Tuned, observe: s.Observe,
		}, run.Settings{
			Seed: s.Seed, DType: s.DType, Engine: s.Engine, Devices: s.Devices, Checkpoint: s.Checkpoint,
			CheckpointEvery: s.CheckpointEvery, Replace: s.Replace, Progress: s.Progress, ObserveEvery: s.ObserveEvery,
		}
}

func Sample(ctx context.Context, problem density.Problem, kernel Kernel, s Settings) (*Result, error) {
	chains, settings := s.apart(kernel)
	result, err := fit.Sample(ctx, problem, chains, settings)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) && result == nil {
		return &Result{Draws: newDraws(cmp.Or(s.Chains, 4), 0, problem.Dim, s.DType), Status: run.Cancelled}, nil
	}
	return fit.Details[*Result](result), err
}

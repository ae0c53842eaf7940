package mcmc

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"
	"gobnn/bayes/run"
)

// NoWarmUp, as the value of Settings.WarmUp, means no warm-up.
const NoWarmUp = -1

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

// Tuned are a step size and the scales of the coordinates, as a warm-up has chosen them.
type Tuned struct {
	StepSize float64   `json:"step_size"` // in units of the scales; 0: not set
	Scale    []float64 `json:"scale"`     // [D], of the coordinates; empty: 1
}

// withDefaults fills in what is zero and checks the rest.
func (s Settings) withDefaults(p density.Problem, kernel Kernel) (Settings, error) {
	for _, f := range []struct {
		value     *int
		byDefault int
	}{{&s.Chains, 4}, {&s.Draws, 1000}, {&s.Thin, 1}, {&s.WarmUp, 1000}, {&s.Devices, 1}} {
		if *f.value == 0 {
			*f.value = f.byDefault
		}
	}
	if s.WarmUp == NoWarmUp {
		s.WarmUp = 0
	}
	if s.DType == 0 {
		s.DType = compute.Float32
	}
	if s.CheckpointEvery == 0 {
		s.CheckpointEvery = 30 * time.Second
	}
	if s.ObserveEvery == 0 {
		s.ObserveEvery = max(1, s.Draws/10)
	}
	return s, s.check(p, kernel)
}

func (s Settings) check(p density.Problem, kernel Kernel) error {
	if err := limits.Check("mcmc: Problem",
		limits.Field("Dim", p.Dim, p.Dim >= 1, "at least 1"),
		limits.Field("Target", "nil", p.Target != nil, "a function that builds the log-density"),
	); err != nil {
		return err
	}
	step, scales := s.Tuned.StepSize, len(s.Tuned.Scale)
	if err := limits.Check("mcmc: Settings",
		limits.Field("Chains", s.Chains, s.Chains >= 1, "at least 1"),
		limits.Field("Draws", s.Draws, s.Draws >= 1, "at least 1"),
		limits.Numbers("Draws", s.Draws, s.Chains, s.Draws, p.Dim),
		limits.Field("Thin", s.Thin, s.Thin >= 1, "at least 1"),
		limits.Field("WarmUp", s.WarmUp, s.WarmUp >= 0, "NoWarmUp, 0 (the default) or more"),
		limits.Field("DType", s.DType, s.DType == compute.Float32 || s.DType == compute.Float64,
			"compute.Float32 or compute.Float64"),
		limits.Field("Devices", s.Devices, s.Devices >= 1, "at least 1 (0: the default, 1)"),
		limits.Field("ObserveEvery", s.ObserveEvery, s.ObserveEvery > 0, "at least 1 (0: a tenth of Draws)"),
		limits.Field("CheckpointEvery", s.CheckpointEvery, s.CheckpointEvery > 0, "positive"),
		limits.Field("Tuned.StepSize", step, step >= 0 && !math.IsInf(step, 1), "positive and finite (0: the kernel's own)"),
		limits.Field("Tuned.Scale", fmt.Sprintf("of length %d", scales), scales == 0 || scales == p.Dim,
			fmt.Sprintf("empty or of length Problem.Dim, %d", p.Dim)),
	); err != nil {
		return err
	}
	for i, v := range s.Tuned.Scale {
		if !(v > 0) || math.IsInf(v, 1) {
			return fmt.Errorf("mcmc: Settings.Tuned.Scale[%d] is %v: it must be positive and finite", i, v)
		}
	}
	if err := Check(kernel, p.Dim, s.WarmUp > 0 || s.Tuned.StepSize > 0); err != nil {
		return err
	}
	if !kernel.UsesTarget() {
		return fmt.Errorf("mcmc: %T does not ask its target, so its draws would know nothing of the problem: "+
			"use a kernel that does, such as mcmc.NUTS{} or mcmc.RandomWalkMetropolis{}", kernel)
	}
	if err := checkClimb(p.Climb, p.Dim); err != nil {
		return err
	}
	if p.Inputs != nil && p.HostInputs != nil {
		return fmt.Errorf("mcmc: Problem has Inputs and HostInputs: set one of them")
	}
	if (p.Inputs != nil || p.HostInputs != nil) && kernel.Carries() != CarriesNothing {
		return fmt.Errorf("mcmc: the target takes new inputs at each move, but %T carries the log-density of the move "+
			"before: use a kernel for noisy gradients, such as mcmc.SGLD or mcmc.SGHMC", kernel)
	}
	return nil
}

// record writes down the settings that determine the result, to compare with a checkpoint's.
func (s Settings) record() (string, error) {
	decides := map[string]any{
		"chains": s.Chains, "draws": s.Draws, "thin": s.Thin, "warm_up": s.WarmUp, "unit_scale": s.FixedScale,
		"tuned": s.Tuned, "dtype": s.DType.String(),
	}
	if s.Devices > 1 {
		decides["devices"] = s.Devices
	}
	text, err := json.Marshal(decides)
	return string(text), err
}

package pmcnet

import (
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/limits"
	"gobnn/bayes/run"
)

// Settings are the settings of a run of Fit or Sample that do not depend on the algorithm. The zero value of every
// field works.
type Settings struct {
	Seed uint64 // of everything random

	DType  compute.DType   // default compute.Float32
	Engine *compute.Engine // default compute.Default
	// Devices is the number of the engine's devices that share the particles of both SMC samplers of Annealed, in parts of
	// equal size; default 1. The result depends on it by rounding only, until rounding decides whether a proposal is
	// accepted. PMC runs on one device: other values are an error.
	Devices int

	// Checkpoint is a file that holds the whole state of the run. It is written every CheckpointEvery (default 30 s),
	// when the context is cancelled (run.Context is, by Ctrl-C) and at the end. If it exists, the run resumes from it,
	// bit for bit as an uninterrupted one; a file of another problem, algorithm, seed or settings is an error. The
	// training that finds the starting point of a PMC has its own file, Checkpoint with ".start" appended. For
	// Annealed, Checkpoint holds the first SMC, and Checkpoint with ".bridge" appended holds the bridge; the steps
	// between them are repeated.
	Checkpoint      string
	CheckpointEvery time.Duration
	// Replace begins anew if the checkpoint is of another run, of an older format or damaged, and overwrites it.
	Replace bool
	// Observe, if set, is called after each ObserveEvery iterations of PMC (default 1), but not for those before a resume,
	// with the posterior that would be returned if the run ended there. Annealed calls it once, at its end, with step 1.
	// An error ends the run, with the status run.Stopped. It is for Fit: Sample has no posterior, and returns an error if
	// Observe is set.
	Observe      func(step int, now *bayes.Posterior) error
	ObserveEvery int
	// Progress, if set, is called after an iteration, at most ten times a second, and at the end. The scores of PMC are
	// "ESS", "k-hat" and, if k-hat is at most MaxKHat, "log evidence", of the iteration; for those of Annealed see
	// smc.Settings.
	Progress func(run.Progress)
}

// withDefaults fills in what is zero and checks the rest.
func (s Settings) withDefaults() (Settings, error) {
	err := limits.Fill("pmcnet: Settings",
		limits.Choice("DType", &s.DType, compute.Float32, compute.Float32, compute.Float64),
		limits.Int("Devices", &s.Devices, 1).From(1),
		limits.Duration("CheckpointEvery", &s.CheckpointEvery, 30*time.Second).Positive(),
		limits.Int("ObserveEvery", &s.ObserveEvery, 1).From(1),
	)
	return s, err
}

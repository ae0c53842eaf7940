package fbnn

import (
	"cmp"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/limits"
	"gobnn/bayes/run"
)

// Settings are the settings of Fit that do not depend on the algorithm. The zero value of every field works.
type Settings struct {
	Seed uint64 // of everything random

	DType  compute.DType   // default compute.Float32
	Engine *compute.Engine // default compute.Default

	// Checkpoint is the beginning of the names of the files that hold the state of each stage: for CES, Checkpoint
	// followed by ".start", ".calibration", ".emulator" (one for each activation that is tried) and ".sampling". They are
	// written every CheckpointEvery (default 30 s), when the context is cancelled and at a stage's end. A run whose files
	// exist resumes from them, bit for bit as an uninterrupted one; files of another model, data, algorithm or seed are an
	// error.
	Checkpoint      string
	CheckpointEvery time.Duration
	// Replace begins anew if a checkpoint is of another run, of an older format or damaged, and overwrites it.
	Replace bool
	// Progress, if set, is called at most ten times a second, and at each stage's end. The name of a stage begins with the
	// name of its step: "calibration", "emulation", "sampling"; or it is "reading: " and what for, of a pass of FitSource
	// over all rows that takes more than 2 seconds, whose steps are rows.
	Progress func(run.Progress)
	// Observe, if set, is called in the sampling step of CES with the posterior of the draws so far, each time that all
	// chains have made ObserveEvery more draws (default: a tenth of CES.Draws). step is the number of draws of each chain.
	// The posterior predicts by the network, also with CES.PaperMode. An error ends the run.
	Observe      func(step int, now *bayes.Posterior) error `json:"-"`
	ObserveEvery int
}

// withDefaults fills in what is zero and checks the rest.
func (s Settings) withDefaults() (Settings, error) {
	s.DType = cmp.Or(s.DType, compute.Float32)
	err := limits.Fill("fbnn: Settings",
		limits.Field("DType", s.DType, s.DType == compute.Float32 || s.DType == compute.Float64,
			"compute.Float32 or compute.Float64"),
		limits.Duration("CheckpointEvery", &s.CheckpointEvery, 30*time.Second).Positive(),
		limits.Int("ObserveEvery", &s.ObserveEvery).From(0),
	)
	return s, err
}

// file is the checkpoint of a stage; empty without checkpoints.
func (s Settings) file(stage string) string {
	if s.Checkpoint == "" {
		return ""
	}
	return s.Checkpoint + "." + stage
}

// progress forwards a stage's progress under the step's name; nil if Settings.Progress is not set.
func (s Settings) progress(step string) func(run.Progress) {
	if s.Progress == nil {
		return nil
	}
	return func(p run.Progress) {
		if p.Stage != "" {
			step := step + ": " + p.Stage
			p.Stage = step
		} else {
			p.Stage = step
		}
		s.Progress(p)
	}
}

package run

import (
	"cmp"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/limits"
)

// Settings are what every run has, whatever its method. The zero value of every field works.
type Settings struct {
	Seed uint64 // of everything random

	DType  compute.DType   // default compute.Float32
	Engine *compute.Engine // default compute.Default
	// Devices is the number of the engine's devices that share the particles, or chains, in equal parts; default 1. The
	// number changes the result by rounding only, but a checkpoint can be resumed only with the same number. A method
	// that runs on one device refuses more. On a CPU one device uses all cores.
	Devices int

	// Checkpoint is a file that holds the whole state of the run. It is written every CheckpointEvery (default 30 s),
	// when the context is cancelled (Context is, by Ctrl-C) and at the end. If it exists, the run resumes from it, and
	// the result equals an uninterrupted run's bit for bit. If that run was finished, its result is returned without
	// compiling. A file of another model, other data, seed or settings is an error, and on a CPU so is an unfinished one
	// of another number of threads, which NPROC in the environment sets. A method of several stages keeps each in a file
	// of its own, whose name begins with this one.
	Checkpoint      string
	CheckpointEvery time.Duration
	// Replace begins anew if the checkpoint is of another run, of an older format or damaged, and overwrites it.
	Replace bool

	// Progress, if set, is called after a step, at most ten times a second, and at the end, with the Status. The end of a
	// method that makes several runs, and of one that fails, has no steps.
	Progress func(Progress) `json:"-"`
	// Observe, if set, is called with the posterior so far after every ObserveEvery steps (default: what the method says,
	// such as an epoch's steps, or a tenth of the draws). A resumed run does not call it again for the steps before. If it
	// returns an error the run ends, with the status Stopped.
	Observe      func(step int, now *bayes.Posterior) error `json:"-"`
	ObserveEvery int
}

// Prepare fills in the defaults, but for ObserveEvery, opens the engine, and checks the rest.
func (s Settings) Prepare() (Settings, error) {
	s.DType, s.Devices = cmp.Or(s.DType, compute.Float32), cmp.Or(s.Devices, 1)
	s.CheckpointEvery = cmp.Or(s.CheckpointEvery, 30*time.Second)
	if err := limits.Check("run: Settings",
		limits.Field("DType", s.DType, s.DType == compute.Float32 || s.DType == compute.Float64,
			"compute.Float32 or compute.Float64"),
		limits.Field("Devices", s.Devices, s.Devices >= 1, "at least 1 (0: the default, 1)"),
		limits.Field("CheckpointEvery", s.CheckpointEvery, s.CheckpointEvery > 0, "positive (0: 30 s)"),
		limits.Field("ObserveEvery", s.ObserveEvery, s.ObserveEvery >= 0, "0 (what the method says) or more"),
	); err != nil {
		return s, err
	}
	var err error
	s.Engine, err = s.Engine.Or()
	return s, err
}

package baseline

import (
	"encoding/json"
	"fmt"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
)

// Settings are those that all methods share. The zero value of every field works.
type Settings struct {
	Epochs    int        // passes over the training part by gradient ascent; default 200
	BatchSize int        // rows of a mini-batch; default 50, or all rows if there are fewer
	Seed      uint64     // of everything random
	Optimiser train.Adam // of all training; default Adam with a constant rate of 0.01

	// ValidateEvery is the number of steps between validations; default: once an epoch. (Package ohsmc validates after
	// each batch, as 1 does here; that costs many times more if predictions have many particles.) Training returns the
	// parameters with the best NLPD on the validation part, for each member of an ensemble its own. Without a validation
	// part, or before the first validation, it returns the last parameters.
	ValidateEvery int
	// Patience ends a member's training after this many validations without a better one; default 0: never. It needs a
	// validation part.
	Patience int

	DType  compute.DType   // default compute.Float32
	Engine *compute.Engine // default compute.Default

	// Checkpoint is a file that holds the whole state of the training. It is written every CheckpointEvery (default 30
	// s), when the context is cancelled (run.Context is, by Ctrl-C) and at the end. If it exists, Fit resumes from it,
	// and the result equals an uninterrupted run's bit for bit. A file of another model, method, other data, seed or
	// settings is an error. A second stage has a file of its own, named Checkpoint and the stage.
	Checkpoint      string
	CheckpointEvery time.Duration
	// Replace begins anew if the checkpoint is of another run, of an older format or damaged, and overwrites it.
	Replace bool
	// Observe, if set, is called after each ObserveEvery steps (default: once an epoch) of gradient ascent, but not for
	// steps before a resume. It gets the posterior of the current parameters. With a validation part the result may
	// have the parameters of an earlier step. For methods that run chains it is also called each time that all chains
	// have Sampling.ObserveEvery more draws, with the posterior of the draws so far; step is then the number of draws
	// of each. An error ends the run, with the status run.Stopped. SWAG's collection, SAE's members after the first,
	// SMC is not observed.
	Observe      func(step int, now *bayes.Posterior) error
	ObserveEvery int
	// Progress, if set, is called after a step, at most ten times a second, and at the end of a stage: "training",
	// "collecting" (SWAG), "member2" and so on (SAE), with the scores of train.Settings, or of chains "warm-up" and
	// "draws", see mcmc.Settings.
	Progress func(run.Progress)
}

// ascent returns the settings of the training by gradient ascent.
func (s Settings) ascent() train.Settings {
	return train.Settings{
		Epochs: s.Epochs, BatchSize: s.BatchSize, Seed: s.Seed, Optimiser: s.Optimiser, ValidateEvery: s.ValidateEvery,
		Patience: s.Patience, DType: s.DType, Engine: s.Engine, Owner: "baseline", Checkpoint: s.Checkpoint,
		CheckpointEvery: s.CheckpointEvery, Replace: s.Replace, ObserveEvery: s.ObserveEvery, Progress: s.Progress,
	}
}

// withDefaults fills in what is zero and checks the rest, for a training part with the given rows.
func (s Settings) withDefaults(rows int) (Settings, error) {
	a, err := s.ascent().WithDefaults(rows)
	s.Epochs, s.BatchSize, s.ValidateEvery, s.ObserveEvery = a.Epochs, a.BatchSize, a.ValidateEvery, a.ObserveEvery
	s.DType, s.CheckpointEvery = a.DType, a.CheckpointEvery
	return s, err
}

// withChains fills in a method's Sampling, and refuses fields that the job's Settings determine.
func withChains(owner string, s, byDefault mcmc.Settings) (mcmc.Settings, error) {
	err := limits.Fill("baseline: "+owner,
		limits.Int("Sampling.Chains", &s.Chains, byDefault.Chains).From(1),
		limits.Int("Sampling.Draws", &s.Draws, byDefault.Draws).From(1),
		limits.Int("Sampling.Thin", &s.Thin, max(1, byDefault.Thin)).From(1),
		limits.Int("Sampling.WarmUp", &s.WarmUp, byDefault.WarmUp).From(1).Or(mcmc.NoWarmUp, "mcmc.NoWarmUp"),
		limits.Int("Sampling.Devices", &s.Devices, 1),
		elsewhere("Seed", s.Seed, s.Seed == 0),
		elsewhere("DType", s.DType, s.DType == 0),
		elsewhere("Engine", s.Engine, s.Engine == nil),
		elsewhere("Checkpoint", s.Checkpoint, s.Checkpoint == ""),
		elsewhere("CheckpointEvery", s.CheckpointEvery, s.CheckpointEvery == 0),
		elsewhere("Replace", s.Replace, !s.Replace),
		elsewhere("Progress", "set", s.Progress == nil),
		elsewhere("Observe", "set", s.Observe == nil),
	)
	return s, err
}

// elsewhere is the limit of a field of a method's Sampling that the job's Settings determine.
func elsewhere(field string, value any, unset bool) limits.Limit {
	cure := fmt.Sprintf("left out: set Settings.%s, which holds for the whole method", field)
	return limits.Field("Sampling."+field, value, unset, cure)
}

// text is a model, method or settings as JSON; newJob has checked that this does not fail.
func text(v any) json.RawMessage {
	out, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("baseline: settings that passed the check cannot be written: %w", err)) // newJob has checked
	}
	return out
}

package ohsmc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/optim"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
)

// Settings of Fit. The zero value of every field works.
type Settings struct {
	Particles int    // J, at least 2; default 1000
	BatchSize int    // M; default 50, or all rows if there are fewer
	Epochs    int    // passes over the training part; default 200
	Seed      uint64 // of everything random

	Resampler smc.Resampler // default smc.Stratified; for Guided smc.Multinomial, as its paper has it
	// Threshold: particles are resampled when their effective sample size is at most Threshold J. Default 1, at every
	// step, for OpenHorizon, as in its paper; 0.5 for the others.
	Threshold float64
	Optimiser optim.Adam // of psi; default Adam with a constant rate of 0.01

	// ValidateEvery is the number of steps between validations; default 1: after each batch, as in the paper. Fit returns
	// the state with the lowest NLPD on the validation part, or without a validation part the last state.
	ValidateEvery int
	// Patience stops the run after this many validations without a lower NLPD; default 0: never. It needs a validation
	// part.
	Patience int

	DType  compute.DType   // default compute.Float32
	Engine *compute.Engine // default compute.Default
	Chunk  int             // particles evaluated at once; default: what compute.NewPlan chooses
	// Devices is how many of the engine's devices share the particles, in parts of equal size; default 1. With more than
	// one, each evaluates its part at once, so Chunk must be 0, and resampling copies all phi to every device. The number
	// changes the result by rounding only, but a checkpoint can be resumed only with the same number. On a CPU one device
	// uses all cores.
	Devices int

	// Checkpoint is a file that holds the whole state of the run. It is written every CheckpointEvery (default 30 s), when
	// the context is cancelled (run.Context is, by Ctrl-C) and at the end. If it exists, Fit resumes from it, and the
	// result is bit for bit that of an uninterrupted run. If that run was finished, Fit returns its result without
	// compiling. A file of another model, other data, seed or settings is an error.
	Checkpoint      string
	CheckpointEvery time.Duration
	// Replace begins anew if the checkpoint is of another run, of an older format or damaged, and overwrites it.
	Replace bool
	// Progress, if set, is called after a step, at most ten times a second, and at the end. Its scores are named
	// fit.LossCurve, fit.ESSCurve, fit.ValidationCurve and fit.BestScore.
	Progress func(run.Progress) `json:"-"`
	// Observe, if set, is called with the current particles and psi after every ObserveEvery steps (default: as many as an
	// epoch has). A resumed run does not call it again for the steps before. If it returns an error the run ends, with the
	// status run.Stopped.
	Observe      func(step int, now *bayes.Posterior) error `json:"-"`
	ObserveEvery int
}

// prepare fills in the defaults, also the algorithm's, and checks the settings against the data.
func (s Settings) prepare(a Algorithm, data *fit.Data) (Algorithm, Settings, error) {
	s.Particles = cmp.Or(s.Particles, 1000)
	s.BatchSize = cmp.Or(s.BatchSize, min(50, data.Rows()))
	s.Epochs = cmp.Or(s.Epochs, 200)
	s.ValidateEvery = cmp.Or(s.ValidateEvery, 1)
	s.Devices = cmp.Or(s.Devices, 1)
	s.DType = cmp.Or(s.DType, compute.Float32)
	s.CheckpointEvery = cmp.Or(s.CheckpointEvery, 30*time.Second)
	if a == nil {
		a = OpenHorizon{}
	}
	a, err := a.Prepare(data.Bound)
	if err != nil {
		return nil, s, err
	}
	if a == nil {
		return nil, s, errors.New("ohsmc: the algorithm's Prepare gives no Algorithm")
	}
	threshold, resampler := 0.5, smc.Stratified
	if r, ok := a.(Resampling); ok {
		threshold, resampler = r.Resampling()
	}
	s.Threshold = cmp.Or(s.Threshold, threshold)
	s.Resampler = cmp.Or(s.Resampler, resampler)
	if err := s.check(data.Rows(), data.Bound.D); err != nil {
		return nil, s, err
	}
	if _, err := describe(a); err != nil {
		return nil, s, err
	}
	if s.Engine, err = s.Engine.Or(); err != nil {
		return nil, s, err
	}
	if err := s.Engine.CheckDevices(s.Devices, s.Particles); err != nil {
		return nil, s, fmt.Errorf("ohsmc: Settings.Devices is %d, Settings.Particles %d: %w", s.Devices, s.Particles, err)
	}
	return a, s, nil
}

// check returns an error that names a setting which is wrong for a training part of this many rows, and particles of
// dimension d.
func (s Settings) check(rows, d int) error {
	batches := fmt.Sprintf("from 1 to the %d rows of the training part", rows)
	whole := fmt.Sprintf("0 with Devices %d, since each device evaluates its particles at once", s.Devices)
	if err := limits.Check("ohsmc: Settings",
		limits.Field("Particles", s.Particles, s.Particles >= 2, "at least 2"),
		limits.Numbers("Particles", s.Particles, s.Particles, d),
		limits.Field("BatchSize", s.BatchSize, s.BatchSize >= 1 && s.BatchSize <= rows, batches),
		limits.Field("Epochs", s.Epochs, s.Epochs >= 1, "at least 1"),
		limits.Field("ValidateEvery", s.ValidateEvery, s.ValidateEvery >= 1, "at least 1"),
		limits.Field("ObserveEvery", s.ObserveEvery, s.ObserveEvery >= 0, "0 (an epoch's steps) or more"),
		limits.Field("Patience", s.Patience, s.Patience >= 0, "0 (never stop early) or more"),
		limits.Field("Threshold", s.Threshold, s.Threshold > 0 && s.Threshold <= 1, "above 0 and at most 1"),
		limits.Field("DType", s.DType, s.DType == compute.Float32 || s.DType == compute.Float64,
			"compute.Float32 or compute.Float64"),
		limits.Field("CheckpointEvery", s.CheckpointEvery, s.CheckpointEvery > 0, "positive"),
		limits.Field("Chunk", s.Chunk, s.Chunk >= 0, "0 (chosen) or more"),
		limits.Field("Devices", s.Devices, s.Devices >= 1, "at least 1 (0: the default, 1)"),
		limits.Field("Chunk", s.Chunk, s.Devices == 1 || s.Chunk == 0, whole),
	); err != nil {
		return err
	}
	if err := s.Resampler.Check(); err != nil {
		return fmt.Errorf("ohsmc: %w", err)
	}
	if err := s.Optimiser.Check(); err != nil {
		return fmt.Errorf("ohsmc: %w", err)
	}
	return nil
}

// record are the settings that determine a run's result, as JSON, for provenance and checkpoints.
func (r *training) record() (json.RawMessage, error) {
	algorithm, err := describe(r.algorithm)
	if err != nil {
		return nil, err
	}
	decides := map[string]any{
		"particles": r.Particles, "batch_size": r.BatchSize, "epochs": r.Epochs, "algorithm": algorithm,
		"resampler": r.Resampler, "threshold": r.Threshold, "optimiser": r.Optimiser, "validate_every": r.ValidateEvery,
		"patience": r.Patience, "dtype": r.DType.String(), "chunk": r.Chunk,
	}
	if r.Devices > 1 {
		decides["devices"] = r.Devices
	}
	return json.Marshal(decides)
}

// nan is the value of a number that is unknown yet.
var nan = math.NaN()

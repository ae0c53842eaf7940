package ohsmc

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/optim"
	"gobnn/bayes/smc"
)

// Settings of Train. The zero value of every field works.
type Settings struct {
	Particles int    // J, at least 2; default 1000
	BatchSize int    // M; default 50, or all rows if there are fewer
	Epochs    int    // passes over the training part; default 200
	Seed      uint64 // of everything random

	Algorithm Algorithm     // OpenHorizon, Guided or SMC; default OpenHorizon{}
	Resampler smc.Resampler // default smc.Stratified; for Guided smc.Multinomial, as its paper has it
	// Threshold: particles are resampled when their effective sample size is at most Threshold J. Default 1, which is every time, for OpenHorizon, as
	// its paper does; 0.5 for the others.
	Threshold float64
	Optimiser optim.Adam // of psi; default Adam with a constant rate of 0.01

	// ValidateEvery is how many steps lie between validations; default 1: after each batch, as the paper does. The state with the best NLPD on the
	// validation part is what Train returns. Without a validation part it returns the last.
	ValidateEvery int
	// Patience stops the run after so many validations without a better one; default 0: never.
	Patience int

	DType  compute.DType   // default compute.Float32
	Engine *compute.Engine // default compute.Default
	Chunk  int             // particles evaluated at once; default: what compute.NewPlan chooses
	// Devices is how many of the engine's devices share the particles, in parts of equal size; default 1. Each then evaluates its part at once, so Chunk must
	// be 0, and resampling brings all phi to every device. The result depends on it by rounding only; a checkpoint goes on with as many devices as it was
	// written with. On a CPU one device uses all cores.
	Devices int

	// Checkpoint is a file that holds the whole state of the run. It is written every CheckpointEvery (default 30 s), when the context is
	// cancelled and at the end. If it exists, Train goes on from it, to the same bits as an uninterrupted run; a file of another model, other data, seed or
	// settings is an error.
	Checkpoint      string
	CheckpointEvery time.Duration
	// Replace begins anew where the checkpoint is of another run, of an older format or damaged, and writes over it.
	Replace bool
	// Progress, if set, is called after a step, at most about ten times a second, and at the end.
	Progress func(Progress) `json:"-"`
	// Observe, if set, is called with the particles and psi as they are after each ObserveEvery steps (default: an epoch's) that this session makes. An
	// error ends the run.
	Observe      func(step int, now *bayes.Posterior) error `json:"-"`
	ObserveEvery int
}

// Progress is where a run stands.
type Progress struct {
	Step, Steps int
	Epoch       int
	LogEvidence float64 // of the last batch, per row
	ESS         float64
	Validation  float64 // last validation NLPD; NaN before the first
	Best        float64 // best so far; NaN before the first
	Elapsed     time.Duration
}

// withDefaults fills in what is zero and checks the rest, for a training part with the given rows.
func (s Settings) withDefaults(bound *bayes.BoundModel, rows int) (Settings, error) {
	defaultInt := func(v *int, byDefault int) {
		if *v == 0 {
			*v = byDefault
		}
	}
	defaultInt(&s.Particles, 1000)
	defaultInt(&s.BatchSize, min(50, rows))
	defaultInt(&s.Epochs, 200)
	defaultInt(&s.ValidateEvery, 1)
	defaultInt(&s.Devices, 1)
	if s.Algorithm == nil {
		s.Algorithm = OpenHorizon{}
	}
	if s.DType == 0 {
		s.DType = compute.Float32
	}
	if s.CheckpointEvery == 0 {
		s.CheckpointEvery = 30 * time.Second
	}
	var err error
	if s.Algorithm, err = s.Algorithm.prepared(bound); err != nil {
		return s, err
	}
	threshold, resampler := s.Algorithm.resampling()
	if s.Threshold == 0 {
		s.Threshold = threshold
	}
	if s.Resampler == "" {
		s.Resampler = resampler
	}
	return s, s.check(bound, rows)
}

func (s Settings) check(bound *bayes.BoundModel, rows int) error {
	for _, c := range []struct {
		ok    bool
		name  string
		value any
		want  string
	}{
		{s.Particles >= 2, "Particles", s.Particles, "at least 2"},
		{s.BatchSize >= 1 && s.BatchSize <= rows, "BatchSize", s.BatchSize, fmt.Sprintf("from 1 to the %d rows of the training part", rows)},
		{s.Epochs >= 1, "Epochs", s.Epochs, "at least 1"},
		{s.ValidateEvery >= 1, "ValidateEvery", s.ValidateEvery, "at least 1"},
		{s.ObserveEvery >= 0, "ObserveEvery", s.ObserveEvery, "0 (an epoch's steps) or more"},
		{s.Patience >= 0, "Patience", s.Patience, "0 (never stop early) or more"},
		{s.Threshold > 0 && s.Threshold <= 1, "Threshold", s.Threshold, "above 0 and at most 1"},
		{s.DType == compute.Float32 || s.DType == compute.Float64, "DType", s.DType, "compute.Float32 or compute.Float64"},
		{s.CheckpointEvery > 0, "CheckpointEvery", s.CheckpointEvery, "positive"},
		{s.Chunk >= 0, "Chunk", s.Chunk, "0 (chosen) or more"},
		{s.Devices >= 1, "Devices", s.Devices, "at least 1 (0: the default, 1)"},
		{s.Devices == 1 || s.Chunk == 0, "Chunk", s.Chunk, fmt.Sprintf("0 with Devices %d, since each device evaluates its particles at once", s.Devices)},
	} {
		if !c.ok {
			return fmt.Errorf("ohsmc: Settings.%s is %v: it must be %s", c.name, c.value, c.want)
		}
	}
	if err := s.Resampler.Check(); err != nil {
		return fmt.Errorf("ohsmc: %w", err)
	}
	if err := s.Optimiser.Check(); err != nil {
		return fmt.Errorf("ohsmc: %w", err)
	}
	return nil
}

// record is what of the settings decides the result, for provenance and checkpoints.
func (s Settings) record() json.RawMessage {
	decides := map[string]any{
		"particles": s.Particles, "batch_size": s.BatchSize, "epochs": s.Epochs,
		"algorithm": s.Algorithm.describe(), "resampler": s.Resampler,
		"threshold": s.Threshold, "optimiser": s.Optimiser, "validate_every": s.ValidateEvery, "patience": s.Patience,
		"dtype": s.DType.String(), "chunk": s.Chunk,
	}
	if s.Devices > 1 {
		decides["devices"] = s.Devices
	}
	text, err := json.Marshal(decides)
	if err != nil {
		panic(fmt.Errorf("ohsmc: settings that passed the check cannot be written: %w", err)) // only a kernel of a user's own could
	}
	return text
}

// nan stands for a number that is not there yet.
var nan = math.NaN()

package baseline

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/limits"
	"gobnn/bayes/optim"
)

// Settings are what all methods share. The zero value of every field works.
type Settings struct {
	Epochs    int        // passes over the training part by gradient ascent; default 200
	BatchSize int        // rows of a mini-batch; default 50, or all rows if there are fewer
	Seed      uint64     // of everything random
	Optimiser optim.Adam // of everything that is trained; default Adam with a constant rate of 0.01

	// ValidateEvery is how many steps lie between validations; default an epoch's. (Package ohsmc validates after each batch: 1 does the same, at a
	// multiple of the cost where predictions have many particles.) The parameters with the best NLPD on the validation part are what training gives, for
	// each member of an ensemble its own. Without a validation part it gives the last.
	ValidateEvery int
	// Patience ends a member's training after so many validations without a better one; default 0: never.
	Patience int

	DType  compute.DType   // default compute.Float32
	Engine *compute.Engine // default compute.Default

	// Checkpoint is a file that holds the whole state of the training. It is written every CheckpointEvery (default 30 s), when the context is
	// cancelled and at the end. If it exists, Fit goes on from it, to the same bits as an uninterrupted run; a file of another model, method, other data,
	// seed or settings is an error. Methods with a second stage keep it in a file beside, named Checkpoint and the stage.
	Checkpoint      string
	CheckpointEvery time.Duration
	// Replace begins anew where the checkpoint is of another run, of an older format or damaged, and writes over it.
	Replace bool
	// Observe, if set, is called after each epoch of a training by gradient ascent that this session makes, with the shared parameters psi, [W]: those of the first
	// member of an ensemble. An error ends the run. The steps of SWAG's collection and of chains are not observed.
	Observe func(epoch int, psi []float64) error
	// Progress, if set, is called after a step, at most about ten times a second, and at the end of a stage.
	Progress func(Progress)
}

// Progress is where a stage of a method stands.
type Progress struct {
	Stage       string  // "training", "collecting" (SWAG), or of chains "warm-up" and "draws", see mcmc.Settings
	Step, Steps int     // of the stage: batches; for chains transitions of the warm-up, and draws of all of them
	Loss        float64 // of the last batch, see StepRecord; NaN for chains
	Validation  float64 // NLPD of the last validation, mean over members; NaN before the first
	Best        float64 // best so far, mean over members; NaN before the first
	Elapsed     time.Duration
}

// withDefaults fills in what is zero and checks the rest, for a training part with the given rows.
func (s Settings) withDefaults(rows int) (Settings, error) {
	defaultInt(&s.Epochs, 200)
	defaultInt(&s.BatchSize, min(50, rows))
	defaultInt(&s.ValidateEvery, (rows+max(s.BatchSize, 1)-1)/max(s.BatchSize, 1))
	if s.DType == 0 {
		s.DType = compute.Float32
	}
	if s.CheckpointEvery == 0 {
		s.CheckpointEvery = 30 * time.Second
	}
	if err := s.Optimiser.Check(); err != nil {
		return s, fmt.Errorf("baseline: %w", err)
	}
	return s, limits.Check("baseline: Settings",
		limits.Field("Epochs", s.Epochs, s.Epochs >= 1, "at least 1"),
		limits.Field("BatchSize", s.BatchSize, s.BatchSize >= 1 && s.BatchSize <= rows, fmt.Sprintf("from 1 to the %d rows of the training part", rows)),
		limits.Field("ValidateEvery", s.ValidateEvery, s.ValidateEvery >= 1, "at least 1"),
		limits.Field("Patience", s.Patience, s.Patience >= 0, "0 (never stop early) or more"),
		limits.Field("DType", s.DType, s.DType == compute.Float32 || s.DType == compute.Float64, "compute.Float32 or compute.Float64"),
		limits.Field("CheckpointEvery", s.CheckpointEvery, s.CheckpointEvery > 0, "positive"),
	)
}

func defaultInt(v *int, byDefault int) {
	if *v == 0 {
		*v = byDefault
	}
}

func defaultFloat(v *float64, byDefault float64) {
	if *v == 0 {
		*v = byDefault
	}
}

// inside says whether x lies strictly between two numbers; NaN does not.
func inside(x, low, high float64) bool { return x > low && x < high }

// positive says whether x is above 0 and finite.
func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

// record is what of the settings decides the result, for provenance and checkpoints.
func (s Settings) record() map[string]any {
	return map[string]any{
		"epochs": s.Epochs, "batch_size": s.BatchSize, "optimiser": s.Optimiser,
		"validate_every": s.ValidateEvery, "patience": s.Patience, "dtype": s.DType.String(),
	}
}

// text writes what describes a method or settings; none of it can fail to be written.
func text(v any) json.RawMessage {
	out, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("baseline: settings that passed the check cannot be written: %w", err)) // newJob has looked
	}
	return out
}

var nan, inf = math.NaN(), math.Inf(1)

package ohsmc

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/smc"
)

// Algorithm is the step that a run repeats for each mini-batch: OpenHorizon, Guided, SMC, or one of your own. It is a
// value that holds settings. Compile makes a Stepper from it, for one model and one size of data, batches and
// particles. If a step is one graph, NewStepper makes the Stepper from a function, as for OpenHorizon and Guided:
//
//	func (a mine) Compile(c *ohsmc.Core) (ohsmc.Stepper, error) {
//		return ohsmc.NewStepper(c, ohsmc.Graphs{Step: func(s ohsmc.State, batch density.Batch, now ohsmc.Now) (
//			ohsmc.State, ohsmc.StepInfo,
//		) {
//			...
//		}})
//	}
//
// The run does everything else: data, validation, checkpoints, progress and the posterior. A checkpoint identifies its
// algorithm by type and JSON, so all settings that affect a step must be exported fields, or in the result of Describe.
//
// An Algorithm may implement these interfaces too, each of which is optional: Described, Resampling, Horizon, Warned
// and Evidence.
type Algorithm interface {
	// Title is the algorithm's name and source, for a posterior's provenance.
	Title() string
	// Prepare fills in defaults for a model, and returns an error that names a setting that is wrong.
	Prepare(model *bayes.BoundModel) (Algorithm, error)
	// Compile prepares the programs of a step.
	Compile(c *Core) (Stepper, error)
}

// Described is an Algorithm that says itself what its JSON contains. It is needed if the fields alone do not identify
// the algorithm: the JSON of a kernel, for instance, has its settings but not its type.
type Described interface {
	Algorithm
	Describe() any
}

// Resampling is an Algorithm with its own defaults for Settings.Threshold and Settings.Resampler, instead of 0.5 and
// smc.Stratified.
type Resampling interface {
	Algorithm
	Resampling() (threshold float64, scheme smc.Resampler)
}

// Horizon is an Algorithm that chooses its batches and their number. Others make Settings.Epochs passes through the
// rows, each in a new random order.
type Horizon interface {
	Algorithm
	Horizon(s Settings, rows int) (batches dataset.Batches, steps int, err error)
}

// Warned is an Algorithm that adds warnings of its own to Result.Warnings, for what may make a finished run doubtful
// besides the checks that every run has.
type Warned interface {
	Algorithm
	Warnings(s Settings, rows int, trace []StepRecord) []string
}

// Evidence is an Algorithm that estimates the evidence of the training part, log p(y; psi).
type Evidence interface {
	Algorithm
	// Evidence is the estimate from the trace of a run on the given number of rows; its Value is NaN if unknown.
	Evidence(s Settings, rows int, trace []StepRecord) bayes.Evidence
}

// Stepper makes the steps of a run by the programs that Compile has prepared. A Trainer uses it again for later runs of
// the same sizes and settings, one run at a time.
type Stepper interface {
	// Begin adds the algorithm's own entries to the session's State before the first step.
	Begin(s *Session) error
	// Advance makes a step on the session's batch. If that takes long it must check the context and, when the context
	// ends, return its error and leave the state as the last step has left it.
	Advance(ctx context.Context, s *Session) (StepRecord, error)
	// Sharded names the entries of the session's state besides phi that have a row for each particle. They are divided
	// between devices as phi is, see compute.Sharding. Log-weights are not divided, since resampling needs all of them on
	// every device.
	Sharded() []string
	// Close frees the programs.
	Close()
}

// Session is a run in progress, as a Stepper sees it.
type Session struct {
	// Settings are those of this run, with the defaults filled in. Take the seed, the learning rate, the number of epochs
	// and the rest from here: of Core's only Particles, BatchSize, Chunk, Devices, DType, Engine, Resampler, Threshold and
	// what else Optimiser has are sure to be this run's, as programs are compiled once for runs that differ in the others.
	Settings
	// State has the entries of a State, the training part's "train_x" and "train_y", and those that the Stepper has added.
	State   *compute.State
	Batches dataset.Batches
	Step    int // steps made so far
}

// Batch is the next step's batch.
func (s *Session) Batch() dataset.Batch { return s.Batches.At(s.Step) }

// Rate is the learning rate of the next step.
func (s *Session) Rate() float64 { return s.Optimiser.Schedule.At(s.Step) }

// horizon returns the batches of a run and its number of steps.
func horizon(a Algorithm, s Settings, rows int) (dataset.Batches, int, error) {
	if h, ok := a.(Horizon); ok {
		return h.Horizon(s, rows)
	}
	return epochs(s, rows)
}

// epochs is the horizon of algorithms that make Settings.Epochs passes through the data.
func epochs(s Settings, rows int) (dataset.Batches, int, error) {
	batches, err := dataset.NewEpochBatches(rows, s.BatchSize, s.Seed)
	if err != nil {
		return nil, 0, err
	}
	if most := mostSteps / batches.PerEpoch(); s.Epochs > most {
		return nil, 0, fmt.Errorf("Settings.Epochs is %d: it must be at most %d with %d batches an epoch", s.Epochs, most,
			batches.PerEpoch())
	}
	return batches, s.Epochs * batches.PerEpoch(), nil
}

// mostSteps is the largest number of steps: their random numbers are told apart by 32 bits, and each has a record.
const mostSteps = math.MaxInt32

// typed is what is written as JSON for the value of an interface: its type besides its settings.
type typed struct {
	Type     string `json:"type"`
	Settings any    `json:"settings"`
}

func typeAnd(settings any) typed { return typed{fmt.Sprintf("%T", settings), settings} }

// described is what describe writes as JSON.
func described(a Algorithm) typed {
	as := typeAnd(a)
	if d, ok := a.(Described); ok {
		as.Settings = d.Describe()
	}
	return as
}

// describe is an algorithm as JSON, for provenance and checkpoints.
func describe(a Algorithm) (json.RawMessage, error) {
	text, err := json.Marshal(described(a))
	if err != nil {
		return nil, fmt.Errorf("ohsmc: the settings of %T cannot be written as JSON, by which a checkpoint knows them: "+
			"%w", a, err)
	}
	return text, nil
}

package particles

import (
	"context"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/bayes/train"
)

// Training has the settings that all algorithms share, and embed: the particles, the batches, and how psi is learnt.
// The zero value of every field works.
//
// The gradient that psi follows is the posterior mean of grad_psi log p(y | phi; psi) (Fisher's identity). The weighted
// particles estimate it:
//
//	grad_psi log p(y; psi) = E[grad_psi log p(y | phi; psi) | y]  ~  sum_j w_j grad_psi log p(y | phi_j; psi)
//
// It takes one reverse pass with the weights held constant. Resampling and moves are not differentiated.
type Training struct {
	Particles int // J, at least 2; default 1000
	BatchSize int // M; default 50, or all rows if there are fewer
	Epochs    int // passes over the training part; default 200

	Resampler smc.Resampler // default: the algorithm's
	// Threshold: particles are resampled when their effective sample size is at most Threshold J; default: the
	// algorithm's. With 1 they are at every step.
	Threshold float64
	Optimiser train.Adam // of psi; default Adam with a constant rate of 0.01

	// ValidateEvery is the number of steps between validations; default: once an epoch; 1 is the paper's. The result is
	// the state with the lowest NLPD on the validation part, or without a validation part the last state.
	ValidateEvery int
	// Patience stops the run after this many validations without a lower NLPD, if there is a validation part; default
	// those of 20 epochs, or 20 of less than one an epoch. (On cars, diabetes, epa and credit of the practice tables the
	// scores of all 200 epochs were no better, in four to eight times the seconds.)
	Patience int

	// Chunk is the number of particles that are evaluated at once; default: what compute.NewPlan chooses. With several
	// devices, each of which evaluates its part at once, it must be 0.
	Chunk int
}

// Algorithm is the step that Run repeats for each mini-batch. It is a fit.Method whose method Run calls the function
// Run. If a step is one graph, NewStepper makes the Stepper from a function:
//
//	func (a mine) Compile(c *particles.Core) (particles.Stepper, error) {
//		return particles.NewStepper(c, particles.Graphs{Step: func(
//			s particles.State, batch density.Batch, now particles.Now,
//		) (particles.State, particles.StepInfo) {
//			...
//		}})
//	}
//
// An Algorithm may also implement the optional interfaces Doubter and Estimator.
type Algorithm interface {
	// Compile prepares the programs of a step.
	Compile(c *Core) (Stepper, error)
}

// Doubter is an Algorithm that adds doubts of its own about a finished run to those of every run.
type Doubter interface {
	Algorithm
	Doubts(t Training, rows int, trace []StepRecord) fit.Doubts
}

// Estimator is an Algorithm that says itself what its particles estimate. Those of others are taken for the posterior
// if all rows are in one batch and nothing is shared, and give no evidence.
type Estimator interface {
	Algorithm
	Estimates(t Training, rows int) Estimates
}

// Estimates are what the particles of a run on a training part estimate.
type Estimates struct {
	// Posterior says that they estimate the posterior given all rows. The provenance says it of others.
	Posterior bool
	// Evidence estimates log p(y; psi) of the training part from the records of all steps; its Value is NaN if it is
	// unknown, such as before the last step. nil: the algorithm has no such estimate.
	Evidence func(trace []StepRecord) bayes.Evidence
}

// Stepper makes the steps of a run by the programs that Compile has prepared. The engine keeps it for later runs of the
// same sizes and settings, one run at a time.
type Stepper interface {
	// Begin adds the algorithm's own entries to the session's State before the first step.
	Begin(s *Session) error
	// Advance makes at least one and at most s.Ahead steps, the first on the session's batch, and returns their records.
	// If that takes long it must check the context and, when the context ends, return its error and leave the state as the
	// last step has left it. If no particle has a weight any more the record's LogEvidence must be -Inf: the run then ends
	// with bayes.ErrZeroWeights.
	Advance(ctx context.Context, s *Session) ([]StepRecord, error)
	// Sharded names the entries of the session's state besides phi that have a row for each particle. They are divided
	// between devices as phi is, see compute.Sharding. Log-weights are not divided, since resampling needs all of them on
	// every device.
	Sharded() []string
	// Close frees the programs.
	Close()
}

// Session is a run in progress, as a Stepper sees it.
type Session struct {
	// Training and Settings belong to this run, with the defaults filled in. Take the seed, the learning rate, the
	// number of epochs and the rest from here, not from Core. Programs are compiled once for several runs, so Core's
	// settings are sure to be this run's only where the graphs depend on them.
	Training
	run.Settings
	// State has the entries of a State, the training part's "train_x" and "train_y", and those that the Stepper has
	// added.
	State   *compute.State
	Batches *dataset.Batches
	Step    int // steps made so far
	Ahead   int // steps until the run looks at the state

	scores []float64 // of the validation after each step that was made, if Core.validates
}

// Batch is the next step's batch.
func (s *Session) Batch() dataset.Batch { return s.Batches.At(s.Step) }

// Rate is the learning rate of the next step.
func (s *Session) Rate() float64 { return s.Optimiser.Schedule.At(s.Step) }

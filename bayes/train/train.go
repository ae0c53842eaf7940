// Package train trains by stochastic gradient ascent: Adam on mini-batches, with validation, early stopping, and what
// package run gives: cancellation, checkpoints, progress.
//
// What is trained is a Learner: J independent members of Q numbers each, theta [J, Q], each with its own objective. A
// point estimate, the members of an ensemble, the parameters of a variational family and an emulator are learners; all
// members are trained in one graph. A member whose objective or gradient is not finite stays the same in that step.
// Each member keeps the parameters of its own best validation.
//
// Run trains, as a part of a method of package fit. The engine keeps the compiled programs, and takes them again for
// equal learners and data of the same size.
package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
)

// Training has the settings that all methods share that train, and embed. The zero value of every field works.
type Training struct {
	Epochs    int  `json:"epochs"`     // passes over the training rows; default 200
	BatchSize int  `json:"batch_size"` // rows of a mini-batch; default 50, or all rows if there are fewer
	Optimiser Adam `json:"optimiser"`  // default Adam with a constant rate of 0.01

	// ValidateEvery is the number of steps between validations; default: once an epoch. Training returns the
	// parameters with the best NLPD on the validation part, for each member of an ensemble its own. Without a validation
	// part, or before the first validation, it returns the last parameters.
	ValidateEvery int `json:"validate_every"`
	// Patience ends a member's training after this many validations without a better one; default 0: never. It needs a
	// validation part.
	Patience int `json:"patience"`
}

// Prepared fills in what is zero and checks the rest, for a number of training rows. Errors begin with the owner, the
// package that trains.
func (t Training) Prepared(owner string, rows int) (Training, error) {
	if err := limits.Fill(owner+": Training",
		limits.Int("Epochs", &t.Epochs, 200).From(1),
		limits.Int("BatchSize", &t.BatchSize, min(50, rows)).Between(1, rows).Because("the rows of the training part"),
		limits.Int("ValidateEvery", &t.ValidateEvery).Zero("once an epoch").From(1),
		limits.Int("Patience", &t.Patience).From(0),
	); err != nil {
		return t, err
	}
	if err := t.Optimiser.Check(); err != nil {
		return t, fmt.Errorf("%s: %w", owner, err)
	}
	return t, nil
}

// Learner is what Run trains. Its methods that take or return nodes build graph, and panic as GoMLX does. Learners that
// hold the same values share compiled programs, so what the graphs depend on must be in its fields.
type Learner interface {
	// Size is the number of members J, and of numbers in each, Q.
	Size() (members, width int)
	// Initial draws theta's starting values, [J, Q].
	Initial(rng random.Stream) *graph.Node
	// Objective estimates from a batch the objective that each member maximises, [J], scaled to all rows, and its
	// gradient, [J, Q].
	Objective(theta *graph.Node, batch density.Batch, rng random.Stream) (value, gradient *graph.Node)
	// Score is each member's validation score on the rows of the batch, [J], such as its prediction's NLPD; lower is
	// better. The stream is the same at each validation.
	Score(theta *graph.Node, batch density.Batch, rng random.Stream) *graph.Node
}

// Collector is a learner that accumulates something at the end of each epoch, such as SWAG's moments.
type Collector interface {
	Learner
	// Collected returns the initial values of the state that it accumulates, by name.
	Collected(dtype compute.DType) map[string]*tensors.Tensor
	// Collect updates that state by theta; count is the number of epochs that have ended, a scalar.
	Collect(s compute.Nodes, count *graph.Node) compute.Nodes
}

// Rows is a part of the data: the number of rows, and a function that returns their tensors on the host, x and y with
// the rows as first axis. It is called only if steps are made; the tensors then belong to the run. Without rows there
// is no such part. Of Streamed rows, for training, there are no tensors: mini-batches are made of the blocks of
// the job's Source.
type Rows struct {
	Count    int
	Tensors  func() (x, y *tensors.Tensor, err error)
	Streamed bool
}

// Of returns a part's standardised rows for a job; none if the part is nil.
func Of(j *fit.Job, part *dataset.Dataset) Rows {
	if part == nil {
		return Rows{}
	}
	tensors := func() (x, y *tensors.Tensor, err error) { return j.Tensors(j.DType, part) }
	return Rows{Count: part.Rows(), Tensors: tensors}
}

// blockRows is the number of rows of a Source that are in memory at a time: as many as package parquet decodes at once.
const blockRows = 1 << 16

// SourceBatches are the mini-batches of the job's Source; nil if its rows are in memory.
func (t Training) SourceBatches(j *fit.Job) *density.SourceBatches {
	if j.Source == nil {
		return nil
	}
	return density.NewSourceBatches(j.Source, density.SourceSettings{
		BatchSize: t.BatchSize, BlockRows: min(max(blockRows, t.BatchSize), j.Rows()), DType: j.DType, Seed: j.Seed,
	})
}

// OfTraining returns the job's training rows: those of Parts.Train, or of its Source.
func OfTraining(j *fit.Job) Rows {
	if j.Source != nil {
		return Rows{Count: j.Rows(), Streamed: true}
	}
	return Of(j, j.Parts.Train)
}

// Task is a training task: the learner, its data and where it starts.
type Task struct {
	Learner
	// Name is of one training of several, after the first: its checkpoint has the name appended, and its progress begins
	// with it.
	Name       string
	Train      Rows
	Validation Rows
	Start      []float64  // theta, flat [J, Q]; nil: drawn by Initial
	Identity   []run.Part // what else a checkpoint must agree in, besides the job's identity, the Start and the Training
	// Posterior makes the posterior of theta, flat [J, Q], for the result, Settings.Observe and fit.Now; its status is
	// empty before the end. Nil: the result has none, and nothing is observed.
	Posterior func(status run.Status, theta []float64) (*bayes.Posterior, error)
}

// ErrDiverged says that no member had a finite gradient. Run wraps it.
var ErrDiverged = errors.New("training diverged")

// Details are the details of a result that was trained: fit.Details[*train.Details](result).
type Details struct {
	// Theta is flat, [J, Q]: at each member's best validation, or the last, if there are no validation rows, before the
	// first validation, and of members whose scores are all NaN or +Inf (Step 0 in Best).
	Theta     []float64
	Collected map[string]*tensors.Tensor // what a Collector has accumulated, on the host
	Steps     int                        // made
	PerEpoch  int                        // steps in an epoch
	Trace     []StepRecord               // one for each step
	Validated []fit.Validated            // one for each validation, with the data's LogScale added
	// Best is each member's best validation, at which its parameters are taken; Step 0 if no validation was finite, nil
	// without a validation part.
	Best []run.Best

	patience int
}

// Then are the details of this training and of one after it: the steps of both, and the rest of this one.
func (d Details) Then(next *Details) Details {
	d.Steps, d.Trace = d.Steps+next.Steps, slices.Concat(d.Trace, next.Trace)
	return d
}

// StepRecord describes a step.
type StepRecord struct {
	// Loss is minus the objective over the number of rows, estimated from the batch, plus the data's LogScale; mean
	// over the members whose objective is finite.
	Loss float64
	// Rejected is the number of members that stayed the same, since their objective or gradient was not finite.
	Rejected int
}

// Result is a result with these details, the curves of loss and validations as means over members, and doubts about
// the training. The method adds its draws or its posterior.
func (d *Details) Result(status run.Status) *fit.Result {
	r := &fit.Result{Status: status, Details: []any{d}}
	if len(d.Trace) > 0 {
		r.Curves = append(r.Curves, fit.NewCurve(fit.LossCurve, d.Trace, func(r StepRecord) float64 { return r.Loss }))
	}
	scores := fit.Curve{Name: fit.ValidationCurve}
	for _, v := range d.Validated {
		scores.Steps, scores.Values = append(scores.Steps, v.Step), append(scores.Values, stat.Mean(v.Scores, nil))
	}
	if len(d.Validated) > 0 {
		r.Curves = append(r.Curves, scores)
	}
	r.Doubts = d.doubts(scores, status)
	return r
}

// Run trains a task's learner for a job, with the settings that Prepared has filled in. Its details are *Details.
//
// A cancelled context is no error: Run returns what the last step has come to, with the status run.Cancelled. An error
// outside the algorithm, such as a full disk, comes with a result as well. Errors wrap ErrDiverged if no member had a
// finite gradient. Losses and scores are shown and returned in the target's units: the learner's are of standardised
// rows, to which the LogScale of the job's data is added. A training uses one device.
func Run(ctx context.Context, j *fit.Job, t Training, task Task) (*fit.Result, error) {
	stage := *j
	if task.Name != "" && j.Checkpoint != "" {
		stage.Checkpoint = j.Checkpoint + "." + task.Name
	}
	if task.Posterior == nil {
		stage.Observe = nil
	}
	r, err := newTraining(&stage, t, task)
	if err != nil {
		return nil, err
	}
	return r.loop().Run(ctx, &stage)
}

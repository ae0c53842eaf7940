// Package train trains by stochastic gradient ascent: Adam on mini-batches, with validation, early stopping, and what
// package run gives: cancellation, checkpoints, progress.
//
// What is trained is a Learner: J independent members of Q numbers each, theta [J, Q], each with its own objective. A
// point estimate, the members of an ensemble, the parameters of a variational family and an emulator are learners; all
// members are trained in one graph. A member whose objective or gradient is not finite stays the same in that step.
// Each member keeps the parameters of its own best validation.
//
// Fit trains once. A Trainer trains repeatedly, and compiles only once for learners of one kind and data of one size.
package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Learner is a model that Fit trains. Its methods that take or return nodes build graph, and panic as GoMLX does.
type Learner interface {
	// Kind identifies everything that its graphs depend on besides the sizes of the data and the Settings: learners of the
	// same kind share compiled programs.
	Kind() string
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
// is no such part.
type Rows struct {
	Count   int
	Tensors func() (x, y *tensors.Tensor, err error)
}

// Of returns a part's standardised rows; none if the part is nil.
func Of(data *fit.Data, part *dataset.Dataset, dtype compute.DType) Rows {
	if part == nil {
		return Rows{}
	}
	return Rows{part.Rows(), func() (x, y *tensors.Tensor, err error) { return data.Tensors(dtype, part) }}
}

// Task is a training task: the learner, its data and where it starts.
type Task struct {
	Learner
	Train      Rows
	Validation Rows
	Start      []float64  // theta, flat [J, Q]; nil: drawn by Initial
	Identity   []run.Part // what a checkpoint must agree in besides Start and the Settings, such as data and model
	// LogScale is added to all losses and scores that are returned or shown. The learner's are of the rows as they are
	// given: if the target was standardised, the data's LogScale gives people those of the target itself. Neither the
	// training nor the choice of the best depends on it.
	LogScale float64
}

// Settings of Fit. The zero value of every field works.
type Settings struct {
	Epochs    int    // passes over the training rows; default 200
	BatchSize int    // rows of a mini-batch; default 50, or all rows if there are fewer
	Seed      uint64 // of everything random
	Optimiser Adam   // default Adam with a constant rate of 0.01

	ValidateEvery int // steps between validations; default an epoch's
	Patience      int // validations without a better one that end a member's training; default 0: never

	DType  compute.DType   // default compute.Float32
	Engine *compute.Engine // default compute.Default

	Owner           string        // the package that trains, with which messages begin; default "train"
	Stage           string        // name of the stage in Progress, for a method of several; may be empty
	Checkpoint      string        // file that holds the whole state, see run.Options; default none
	CheckpointEvery time.Duration // default 30 s
	Replace         bool          // begin anew if the checkpoint is of another run, or damaged

	// Observe, if set, is called with theta, flat [J, Q], every ObserveEvery steps (default an epoch's), but not for those
	// before a resume. An error ends the run, with the status run.Stopped and a result.
	Observe      func(step int, theta []float64) error
	ObserveEvery int
	// Progress, if set, is called after a step, at most ten times a second, and at the end. Its scores, named
	// fit.LossCurve, fit.ValidationCurve and fit.BestScore, are means over members.
	Progress func(run.Progress)
}

// WithDefaults fills in the settings that are zero and checks the others, for the given number of training rows.
func (s Settings) WithDefaults(rows int) (Settings, error) {
	byDefault := func(v *int, value int) {
		if *v == 0 {
			*v = value
		}
	}
	if s.Owner == "" {
		s.Owner = "train"
	}
	byDefault(&s.Epochs, 200)
	byDefault(&s.BatchSize, min(50, rows))
	perEpoch := (rows + max(s.BatchSize, 1) - 1) / max(s.BatchSize, 1)
	byDefault(&s.ValidateEvery, perEpoch)
	byDefault(&s.ObserveEvery, perEpoch)
	if s.DType == 0 {
		s.DType = compute.Float32
	}
	if s.CheckpointEvery == 0 {
		s.CheckpointEvery = 30 * time.Second
	}
	if err := s.Optimiser.Check(); err != nil {
		return s, fmt.Errorf("%s: %w", s.Owner, err)
	}
	size := fmt.Sprintf("from 1 to the %d rows of the training part", rows)
	return s, limits.Check(s.Owner+": Settings",
		limits.Field("Epochs", s.Epochs, s.Epochs >= 1, "at least 1"),
		limits.Field("BatchSize", s.BatchSize, s.BatchSize >= 1 && s.BatchSize <= rows, size),
		limits.Field("ValidateEvery", s.ValidateEvery, s.ValidateEvery >= 1, "at least 1"),
		limits.Field("Patience", s.Patience, s.Patience >= 0, "0 (never stop early) or more"),
		limits.Field("DType", s.DType, s.DType == compute.Float32 || s.DType == compute.Float64,
			"compute.Float32 or compute.Float64"),
		limits.Field("CheckpointEvery", s.CheckpointEvery, s.CheckpointEvery > 0, "positive"),
		limits.Field("ObserveEvery", s.ObserveEvery, s.ObserveEvery >= 1, "at least 1"),
	)
}

// Record returns the settings that determine the result, for provenance and checkpoints.
func (s Settings) Record() map[string]any {
	return map[string]any{
		"epochs": s.Epochs, "batch_size": s.BatchSize, "optimiser": s.Optimiser,
		"validate_every": s.ValidateEvery, "patience": s.Patience, "dtype": s.DType.String(),
	}
}

// ErrDiverged says that no member had a finite gradient. Fit wraps it.
var ErrDiverged = errors.New("training diverged")

// Result of Fit.
type Result struct {
	// Theta is flat, [J, Q]: at each member's best validation, or the last, if there are no validation rows, before the
	// first validation, and of members whose scores are all NaN or +Inf (Step 0 in Best).
	Theta []float64
	// State is the run's whole state, on the host, with what a Collector has accumulated.
	State     map[string]*tensors.Tensor
	Status    run.Status
	Elapsed   time.Duration // over all sessions of a resumed run
	Steps     int           // made
	PerEpoch  int           // steps in an epoch
	Trace     []StepRecord  // one for each step
	Validated []Validation  // one for each validation
	Best      []run.Best    // of each member; nil without validation rows
}

// StepRecord describes a step.
type StepRecord struct {
	// Loss is minus the objective over the number of rows, estimated from the batch, plus Task.LogScale; mean over the
	// members whose objective is finite.
	Loss float64
	// Rejected is the number of members that stayed the same, since their objective or gradient was not finite.
	Rejected int
}

// Validation holds the members' scores on the validation rows after a step, plus Task.LogScale.
type Validation struct {
	Step int       // counted from 1
	NLPD []float64 // of each member
}

// Curves returns the loss of each step and the score of each validation, as means over members.
func Curves(trace []StepRecord, validated []Validation) []fit.Curve {
	var curves []fit.Curve
	if len(trace) > 0 {
		curves = append(curves, fit.NewCurve(fit.LossCurve, trace, func(r StepRecord) float64 { return r.Loss }))
	}
	if len(validated) > 0 {
		c := fit.Curve{Name: fit.ValidationCurve}
		for _, v := range validated {
			c.Steps, c.Values = append(c.Steps, v.Step), append(c.Values, stat.Mean(v.NLPD, nil))
		}
		curves = append(curves, c)
	}
	return curves
}

// Trainer trains repeatedly and keeps its compiled programs: it compiles once for learners of one kind and data and
// settings of the same sizes. The learning rate and the seed may differ. The zero value is ready; it may be used by
// several goroutines.
type Trainer struct {
	programs compute.Cache[programKey, *programs]
}

// Close frees what was compiled.
func (t *Trainer) Close() { t.programs.Close() }

// Compiled is the number of kinds of training that are compiled.
func (t *Trainer) Compiled() int { return t.programs.Len() }

// Fit trains once.
//
// A cancelled context is no error: Fit returns the result of the last step, with the status run.Cancelled. An error
// outside the algorithm, such as a full disk, comes with a result as well. Errors wrap ErrDiverged if no member had a
// finite gradient.
func Fit(ctx context.Context, task Task, settings Settings) (*Result, error) {
	var t Trainer
	defer t.Close()
	return t.Fit(ctx, task, settings)
}

// Fit is the function Fit with the trainer's compiled programs.
func (t *Trainer) Fit(ctx context.Context, task Task, settings Settings) (*Result, error) {
	m, err := t.newMachine(task, settings)
	if err != nil {
		return nil, err
	}
	defer m.close()
	r := run.New(m, run.Options{
		Owner: m.Owner, Checkpoint: m.Checkpoint, Format: "gobnn.ascent/1", Every: m.CheckpointEvery, Replace: m.Replace,
		Progress: m.Settings.Progress,
	})
	err = r.Loop(ctx)
	if r.Status() == "" {
		return nil, err
	}
	result, failed := m.result()
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	result.Status, result.Elapsed = r.Status(), r.Elapsed()
	return result, err
}

// meanBest is the mean over members of their best scores.
func meanBest(best []run.Best) float64 {
	all := make([]float64, len(best))
	for i, b := range best {
		all[i] = b.NLPD
	}
	return floats.Sum(all) / float64(len(all))
}

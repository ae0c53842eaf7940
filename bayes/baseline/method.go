package baseline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/bayes/train"
)

// Method is a way to compute a posterior. MLE, MAP, Ensemble, SAE, Dropout, SWAG, VI, Laplace, MAPHMC, SGLD, SGHMC,
// HMC and SMC are methods, and the zero value of each works; a type of your own with these four
// methods is one too. Its exported fields are written to the provenance as JSON, and compared when a run resumes from a
// checkpoint.
type Method interface {
	// Name is the method's name in tables.
	Name() string
	// Source is the method's source, such as the paper, for the provenance.
	Source() string
	// Prepare fills in the defaults for the model, the data and the Settings of a job, and returns an error for a setting
	// that is out of bounds.
	Prepare(j *Job) (Method, error)
	// Fit runs the method, as Prepare gave it, for the job.
	Fit(ctx context.Context, j *Job) (*Result, error)
}

// Methods returns all methods of this package, each with its default settings.
func Methods() []Method {
	return []Method{
		MLE{}, MAP{}, Ensemble{}, SAE{}, Dropout{}, SWAG{}, VI{}, Laplace{}, MAPHMC{}, SGLD{}, SGHMC{}, HMC{}, SMC{},
	}
}

// ErrDiverged says that no member had a finite gradient, or that chains left the region of finite density. Fit wraps
// it.
var ErrDiverged = train.ErrDiverged

// Result of Fit.
type Result struct {
	fit.Result
	Steps     int                // number of steps of gradient ascent made
	PerEpoch  int                // steps in an epoch
	Trace     []train.StepRecord // one for each step
	Validated []train.Validation // one for each validation
	// Best is each member's best validation, at which its parameters are taken; Step 0 if no validation was finite, nil
	// without a validation part.
	Best   []run.Best
	Chains *mcmc.Result // of methods that run chains; nil for the others
	SMC    *smc.Result  // of SMC; nil for the others
}

// Fit runs a method. Features, and the target of a regression, are standardised by the training part's means and
// standard deviations unless Model.Scaling says otherwise; the posterior keeps them and predicts in raw units. If
// Model.Stochastic is not set, all weights and biases are stochastic (bayes.All).
//
// A cancelled context is not an error: Fit returns the result of the last step, with the status run.Cancelled. If a
// method's second stage has no draws yet there is no posterior, and the error wraps the context's. An error outside the
// method, such as a full disk, comes with a result as well. Errors wrap dataset.ErrMissingClass or ErrDiverged where
// these apply.
func Fit(
	ctx context.Context, model bayes.Model, method Method, parts dataset.Parts, settings Settings,
) (*Result, error) {
	trainer := NewTrainer(model)
	defer trainer.Close()
	return trainer.Fit(ctx, method, parts, settings)
}

// Trainer fits one model repeatedly, on different splits, with different methods, seeds and learning rates, and
// compiles only once for data and settings of the same size and kind. It may be used by several goroutines, one run at
// a time.
type Trainer struct {
	model    bayes.Model
	mu       sync.Mutex
	training train.Trainer
	tempered compute.Cache[temperedKind, *smc.Sampler]
}

// NewTrainer is a trainer of the model. Close it at the end.
func NewTrainer(model bayes.Model) *Trainer { return &Trainer{model: model} }

// Close frees the compiled programs.
func (t *Trainer) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.training.Close()
	t.tempered.Close()
}

// Fit is the function Fit with the trainer's model.
func (t *Trainer) Fit(ctx context.Context, method Method, parts dataset.Parts, settings Settings) (*Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	begun := time.Now()
	j, err := t.newJob(method, parts, settings)
	if err != nil {
		return nil, err
	}
	result, err := j.method.Fit(ctx, j)
	if result == nil || result.Posterior == nil {
		if err == nil {
			err = fmt.Errorf("baseline: %T gives neither a posterior nor an error", j.method)
		}
		return nil, err
	}
	result.Elapsed = j.earlier + time.Since(begun)
	result.Curves = append(train.Curves(result.Trace, result.Validated), result.Curves...)
	result.warn()
	if j.Patience > 0 && j.Parts.Validation == nil && len(result.Trace) > 0 {
		result.Warnings = append(result.Warnings, fmt.Sprintf("Settings.Patience is %d, and there is no validation part, so "+
			"that no training was stopped early", j.Patience))
	}
	result.Warnings = append(result.Warnings, diag.Mixing(ctx, result.Posterior, j.Parts.Train)...)
	return result, err
}

// FullEvaluations implements diag.Evaluated: the number of full forward passes of the network for the draws; 0 without
// chains.
func (r *Result) FullEvaluations() float64 { return r.Chains.FullEvaluations() }

// warn adds warnings for what makes the posterior doubtful.
func (r *Result) warn() {
	rejected := 0
	for _, s := range r.Trace {
		rejected += s.Rejected
	}
	if rejected > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("in %d steps a member stayed where it was, since its gradient was "+
			"not finite: "+
			"take a smaller learning rate, and check the data for outliers", rejected))
	}
	never := 0
	for _, b := range r.Best {
		if b.Step == 0 {
			never++
		}
	}
	if never > 0 && len(r.Validated) > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("of %d members %d never had a finite NLPD on the validation part: "+
			"their last parameters are taken, not their best; check the validation part for outliers", len(r.Best), never))
	}
	if n := len(r.Validated); n > 0 && r.PerEpoch > 0 && r.Status == run.Completed {
		scores := train.Curves(nil, r.Validated)[0].Values // means over members
		steps := r.Validated[n-1].Step                     // without those that collect, after the training
		if text := run.Ending(scores, steps, steps/r.PerEpoch); text != "" {
			r.Warnings = append(r.Warnings, text)
		}
	}
	if r.Chains != nil {
		r.Warnings = append(r.Warnings, r.Chains.Warnings...)
	}
}

// names lists the types of all methods, for an error.
func names() string {
	var all []string
	for _, m := range Methods() {
		all = append(all, fmt.Sprintf("%T", m))
	}
	return strings.Join(all, ", ")
}

// newJob checks everything and fills in the defaults.
func (t *Trainer) newJob(method Method, parts dataset.Parts, settings Settings) (*Job, error) {
	if method == nil {
		return nil, fmt.Errorf("baseline: there is no method: take one of %s", names())
	}
	j := &Job{trainer: t, method: method}
	var err error
	if j.Data, err = joined(t.model, parts); err != nil {
		return nil, err
	}
	if _, err := json.Marshal(j.Bound.Model); err != nil { // a compiled program's key has the model as JSON
		return nil, fmt.Errorf("baseline: the model: %w", err)
	}
	if j.Settings, err = settings.withDefaults(j.Rows()); err != nil {
		return nil, err
	}
	if j.Engine, err = settings.Engine.Or(); err != nil {
		return nil, err
	}
	if j.method, err = method.Prepare(j); err != nil {
		return nil, err
	}
	if j.method == nil {
		return nil, errors.New("baseline: Prepare of the method gives nil without an error")
	}
	if j.described, err = describe(j.method); err != nil { // a user's own kernel may not be JSON
		return nil, fmt.Errorf("baseline: the settings of %T: %w", j.method, err)
	}
	if j.Checkpoint != "" {
		if err := run.CheckWritten(j.method); err != nil {
			return nil, fmt.Errorf("baseline: checkpoint: %w", err)
		}
	}
	return j, nil
}

// describe is a method with its settings, for the provenance and for checkpoints.
func describe(m Method) (json.RawMessage, error) {
	return json.Marshal(map[string]any{"type": fmt.Sprintf("%T", m), "settings": m})
}

// finish is the result of a run: the posterior, if there is one, and the training's records.
func finish(trained *train.Result, posterior *bayes.Posterior) *Result {
	r := &Result{
		Steps: trained.Steps, PerEpoch: trained.PerEpoch, Trace: trained.Trace, Validated: trained.Validated,
		Best: trained.Best,
	}
	r.Status, r.Posterior = trained.Status, posterior
	return r
}

// cancelled is an error if a stage that is followed by another was cancelled or stopped before its end.
func cancelled(ctx context.Context, status run.Status, what string) error {
	if status.Err() == nil {
		return nil
	}
	return fmt.Errorf("baseline: cancelled %s: %w", what, errors.Join(context.Cause(ctx), status.Err()))
}

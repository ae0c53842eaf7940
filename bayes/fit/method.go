package fit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"reflect"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/run"
)

// Method is a way to a posterior: an algorithm with its own settings, such as its number of particles. Every algorithm
// of the library is one, and so is a type of yours with these three functions. It is a value: its exported fields are
// written to the posterior's provenance as JSON, and compared when a run resumes from a checkpoint.
type Method interface {
	// Title is the algorithm's name and its source, for provenance.
	Title() string
	// Prepare fills in the defaults for a job, and returns an error that names a setting that is wrong, or what the job
	// lacks for this method. Nothing is compiled before it.
	Prepare(j *Job) (Method, error)
	// Run runs the method that Prepare returned. Its result has Draws, from which Fit makes the posterior.
	Run(ctx context.Context, j *Job) (*Result, error)
}

// Job is one call of Fit for a method: the settings of the run, with their defaults filled in, and the model and its
// data, checked against each other.
type Job struct {
	run.Settings
	*Data
	// Described is the method with its settings, as JSON, for checkpoints.
	Described json.RawMessage

	method Method
	begun  time.Time
}

// Fit runs a method on a model and the training part of the data. Features, and the target of a regression, are
// standardised by the training part's means and standard deviations, unless Model.Scaling says otherwise; the posterior
// keeps these and predicts in raw units. If Model.Stochastic is not set all parameters are stochastic.
//
// A cancelled context is no error: Fit returns what the steps so far have found, with the status run.Cancelled. If
// there are no draws yet it returns no result, and an error that wraps the context's. If Observe fails, or a checkpoint
// cannot be written, as on a full disk, Fit returns the error together with the result so far. The status is then
// run.Stopped, or run.Completed if only the last checkpoint failed. With other errors there is no result. Errors wrap
// dataset.ErrMissingClass if a class has no row, and the errors that the method documents.
func Fit(
	ctx context.Context, model bayes.Model, method Method, parts dataset.Parts, settings run.Settings,
) (*Result, error) {
	j, err := newJob(model, method, parts, settings)
	if err != nil {
		return nil, err
	}
	return j.run(ctx)
}

// newJob checks everything that needs no graph.
func newJob(model bayes.Model, method Method, parts dataset.Parts, settings run.Settings) (*Job, error) {
	if method == nil {
		return nil, errors.New("fit: there is no method: take one, such as ohsmc.OpenHorizon{}, ohsmc.Guided{} or " +
			"ohsmc.SMC{}")
	}
	j := &Job{begun: time.Now()}
	var err error
	if j.Data, err = New(ownerOf(method), AllByDefault(model), parts); err != nil {
		return nil, err
	}
	return j, j.prepare(method, settings)
}

// ownerOf is the package of a method, with which messages begin.
func ownerOf(method Method) string {
	t := reflect.TypeOf(method)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if owner := path.Base(t.PkgPath()); owner != "." {
		return owner
	}
	return "fit"
}

// prepare fills in the settings' and the method's defaults.
func (j *Job) prepare(method Method, settings run.Settings) (err error) {
	if j.Settings, err = settings.Prepare(); err != nil {
		return err
	}
	prepared, err := method.Prepare(j)
	if err != nil {
		return err
	}
	if prepared == nil {
		return fmt.Errorf("fit: Prepare of %T gives no method", method)
	}
	j.method = prepared
	written, err := json.Marshal(map[string]any{"type": fmt.Sprintf("%T", prepared), "settings": prepared})
	if err != nil {
		return fmt.Errorf("fit: the settings of %T cannot be written as JSON, by which a checkpoint knows them: %w",
			prepared, err)
	}
	if j.Described = written; j.Checkpoint != "" {
		if err := run.CheckWritten(prepared); err != nil {
			return fmt.Errorf("fit: Settings.Checkpoint is set: %w", err)
		}
	}
	return nil
}

// run runs the prepared method, and makes the posterior of its draws.
func (j *Job) run(ctx context.Context) (*Result, error) {
	late := ctx.Err() != nil && j.Checkpoint == "" // a checkpoint may hold a finished run
	result, err := j.method.Run(ctx, j)
	switch {
	case result == nil && err == nil:
		return nil, fmt.Errorf("fit: %T.Run gives neither a result nor an error", j.method)
	case result == nil:
		return nil, err
	case late && result.Status.Err() == nil:
		return nil, fmt.Errorf("fit: %T.Run was given a context that had ended, and went on: it must look at it between "+
			"its steps", j.method)
	}
	if result.Posterior == nil {
		posterior, failed := j.posterior(result)
		if failed != nil {
			return nil, errors.Join(err, failed)
		}
		result.Posterior = posterior
	}
	if result.Elapsed == 0 {
		result.Elapsed = time.Since(j.begun)
	}
	return result, err
}

// posterior is the posterior of a result's draws.
func (j *Job) posterior(r *Result) (*bayes.Posterior, error) {
	if r.Draws.Phi == nil {
		return nil, fmt.Errorf("fit: the result of %T.Run has neither Draws nor a Posterior", j.method)
	}
	p, err := j.PosteriorOf(r.Draws, r.Status, r.Approximation)
	if err != nil {
		return nil, fmt.Errorf("fit: the draws of %T: %w", j.method, err)
	}
	return p, nil
}

// PosteriorOf is the posterior of draws, for Settings.Observe and for a result. The status is empty before the end.
// approximation says in words what the draws are of, if they are not of the posterior; see bayes.Provenance.
func (j *Job) PosteriorOf(draws bayes.Draws, status run.Status, approximation string) (*bayes.Posterior, error) {
	return j.Posterior(draws, bayes.Provenance{
		Algorithm: j.Owner + ": " + j.method.Title(), Status: string(status), Seed: j.Seed, Settings: j.Described,
		Approximation: approximation,
	}, j.Engine)
}

// Identity returns the parts in which a run of the job and its checkpoint must agree: data, model, seed, method and
// backend.
func (j *Job) Identity() ([]run.Part, error) {
	model, err := json.Marshal(j.Bound.Model)
	if err != nil {
		return nil, fmt.Errorf("the model cannot be written as JSON: %w", err)
	}
	rows := j.Hash()
	if part := j.Parts.Validation; part != nil {
		rows += ", validation " + part.Hash()
	}
	settings, err := json.Marshal(map[string]any{
		"method": j.Described, "dtype": j.DType.String(), "devices": j.Devices,
	})
	if err != nil {
		return nil, err
	}
	return []run.Part{
		{Name: "data", Value: rows},
		{Name: "model", Value: string(model)},
		{Name: "seed", Value: fmt.Sprint(j.Seed)},
		{Name: "settings", Value: string(settings)},
		{Name: "backend", Value: j.Engine.Name()},
	}, nil
}

// Loop makes the steps of a machine, with the job's checkpoint. After an error the run's Status says whether there is a
// result, as for run.Run.Loop.
func (j *Job) Loop(ctx context.Context, m run.Machine, format string) (*run.Run, error) {
	r := run.New(m, run.Options{
		Owner: j.Owner, Checkpoint: j.Checkpoint, Format: format, Every: j.CheckpointEvery, Replace: j.Replace,
		Progress: j.Settings.Progress,
	})
	err := r.Loop(ctx)
	return r, err
}

// Position is where a run stands after a step, as Steps yields it. It is valid until the next step.
type Position struct {
	run.Progress
	Result  *Result // nil until the run has ended
	machine run.Machine
}

// Posterior is the posterior of the draws so far; an error if the method has none on its way.
func (p Position) Posterior() (*bayes.Posterior, error) {
	switch m := p.machine.(type) {
	case nil:
		if p.Result != nil {
			return p.Result.Posterior, nil
		}
	case interface {
		Posterior() (*bayes.Posterior, error)
	}:
		return m.Posterior()
	}
	return nil, errors.New("fit: this method has no posterior before its end")
}

// Steps is Fit for a range loop of your own: it yields after each step, and once more at the end, with the result.
// Leaving the loop ends the run as a cancelled context does: the checkpoint is written, if one is set, and Fit or Steps
// with the same settings resume from it, bit for bit. An error of Fit is yielded last.
func Steps(
	ctx context.Context, model bayes.Model, method Method, parts dataset.Parts, settings run.Settings,
) iter.Seq2[Position, error] {
	return func(yield func(Position, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		left := false
		result, err := Fit(run.Watched(ctx, func(p run.Progress, m run.Machine) {
			if !left && !yield(Position{Progress: p, machine: m}, nil) {
				left = true
				cancel()
			}
		}), model, method, parts, settings)
		if !left {
			yield(Position{Result: result}, err)
		}
	}
}

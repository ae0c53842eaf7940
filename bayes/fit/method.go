package fit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
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

// Taker is a Method that takes more, or something else, than a model and rows in memory, as all others do.
type Taker interface{ Takes() Takes }

// Takes is what a method takes. Fit, Sample and From ask for it once.
type Takes struct {
	// Density: Sample takes the method. Of its job it asks Job.Density for what it samples, and no data.
	Density bool
	// Trained: From takes the method. It samples phi, and leaves shared parameters where they are.
	Trained bool
	// RowsAtOnce, if not 0: the rows of Parts.Source too, which do not fit in memory. Fit reads them once, at most
	// RowsAtOnce at a time, to check them and to compute their means and standard deviations. Prepare is called before,
	// and again with what was found, such as the number of classes; its Job has Source in place of Parts.Train. A row that
	// differs when it is read again is an error.
	RowsAtOnce int
	// Elsewhere, if not nil: rows that are held elsewhere, such as by the shards of package pbnn/shards, and none of
	// Parts. It asks the holders for what they have. It returns the method, which may keep what it has learnt, and the
	// data that Held makes of the model.
	Elsewhere func(ctx context.Context, model bayes.Model) (Method, *Data, error)
	// Validation: the method trains on the rows of the validation part too, by which its posterior can then not be judged.
	Validation bool
}

// takes is what a method takes.
func takes(m Method) Takes {
	if t, ok := m.(Taker); ok {
		return t.Takes()
	}
	return Takes{}
}

// From is a method that continues a trained posterior, such as chains after a training by package ohsmc: it samples the
// stochastic parameters, phi, given the rows of the training part, with the posterior's model, shared parameters, psi,
// and standardisation. Chains begin at its particles, drawn by their weights. The model that Fit is given is left
// empty.
type From struct {
	Trained *bayes.Posterior
	Method  Method
}

// Title implements Method.
func (f From) Title() string { return f.Method.Title() }

// Prepare implements Method. Fit does not call it: it prepares From.Method, for a job with Trained.
func (f From) Prepare(j *Job) (Method, error) { return f.Method.Prepare(j) }

// Run implements Method.
func (f From) Run(ctx context.Context, j *Job) (*Result, error) { return f.Method.Run(ctx, j) }

// Fit runs a method on a model and the training part of the data. Features, and the target of a regression, are
// standardised by the training part's means and standard deviations, unless Model.Scaling says otherwise; the posterior
// keeps these and predicts in raw units. If Model.Stochastic is not set all parameters are stochastic.
//
// A cancelled context is no error: Fit returns what the steps so far have found, with the status run.Cancelled. If
// there are no draws yet it returns no result, and an error that wraps the context's. If Observe fails, or a checkpoint
// cannot be written, as on a full disk, Fit returns the error together with the result so far. The status is then
// run.Stopped, or run.Completed if only the last checkpoint failed. With other errors there is no result. Errors wrap
// dataset.ErrMissingClass if a class has no row, and the errors that the method documents.
//
// With a context of run.Watched a function of yours is called after each step, where Now has the result so far; it
// leaves the run by cancelling the context.
func Fit(
	ctx context.Context, model bayes.Model, method Method, parts dataset.Parts, settings run.Settings,
) (result *Result, err error) {
	if e := extractorOf(model, method); e != nil {
		return behind(ctx, e, model, method, parts, settings)
	}
	end := watchEnd(&settings)
	defer func() { end(ctx, result, err) }()
	j, err := newJob(ctx, model, method, parts, settings)
	if err != nil {
		return nil, err
	}
	return j.run(ctx)
}

// Sample runs a method on a log-density of your own. The result has Draws in place of a Posterior, which needs a model
// and data; so does Settings.Observe, which must not be set. All else is as for Fit.
func Sample(
	ctx context.Context, problem density.Problem, method Method, settings run.Settings,
) (result *Result, err error) {
	end := watchEnd(&settings)
	defer func() { end(ctx, result, err) }()
	j, err := newSampling(problem, method, settings)
	if err != nil {
		return nil, err
	}
	return j.run(ctx)
}

// watchEnd returns a function that reports the end of a run to Settings.Progress, unless the last step did: that of a
// method that makes several runs, such as folds, does not, nor does a run that failed.
func watchEnd(s *run.Settings) (end func(context.Context, *Result, error)) {
	report := s.Progress
	if report == nil {
		return func(context.Context, *Result, error) {}
	}
	var ended atomic.Bool
	s.Progress = func(p run.Progress) {
		ended.Store(p.Status != "")
		report(p)
	}
	return func(ctx context.Context, result *Result, err error) {
		switch {
		case result != nil && !ended.Load():
			report(run.Progress{Status: result.Status, Elapsed: result.Elapsed})
		case result == nil && ctx.Err() != nil:
			report(run.Progress{Status: run.Cancelled})
		case result == nil:
			report(run.Progress{Status: run.Stopped})
		}
	}
}

// run runs the prepared method, and makes the posterior of its draws.
func (j *Job) run(ctx context.Context) (*Result, error) {
	if j.Source != nil {
		if err := j.read(ctx); err != nil {
			return nil, err
		}
	}
	result, err := j.method.Run(ctx, j)
	switch {
	case result == nil && err == nil:
		return nil, fmt.Errorf("fit: %T.Run gives neither a result nor an error", j.method)
	case result == nil:
		return nil, err
	}
	if failed := j.complete(result); failed != nil {
		return nil, errors.Join(err, failed)
	}
	result.Doubts = append(result.Doubts, j.doubts(ctx, result.Posterior)...)
	result.Warnings = result.Doubts.Sentences()
	if p := result.Posterior; p != nil { // its file keeps them
		result.Posterior = p.WithDoubts(string(result.Status), result.Warnings)
	}
	if result.Elapsed == 0 {
		result.Elapsed = j.Elapsed()
	}
	return result, err
}

// Now is the result that a run would have if it ended after this step, with an empty status. The machine is that of
// run.Watched, and the result is valid until the next step; an error if the method has none before its end.
func Now(m run.Machine) (*Result, error) {
	of, ok := m.(interface{ Now() (*Result, error) })
	if !ok {
		return nil, errors.New("fit: this method has no result before its end")
	}
	now, err := of.Now()
	if err == nil {
		now.Warnings = now.Doubts.Sentences()
	}
	return now, err
}

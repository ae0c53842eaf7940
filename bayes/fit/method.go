package fit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"reflect"
	"sync/atomic"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
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

// OfDensity is a Method that Sample takes too: of its job it asks Job.Density for what it samples, and no data.
type OfDensity interface {
	Method
	OfDensity()
}

// OfTrained is a Method that From takes: one that samples phi, and leaves shared parameters where they are.
type OfTrained interface {
	Method
	OfTrained()
}

// OfSource is a Method that takes the rows of Parts.Source, which do not fit in memory. Fit reads them once, at most
// RowsAtOnce at a time, to check them and to compute their means and standard deviations. Prepare is called before, and
// again with what was found, such as the number of classes; its Job has Source in place of Parts.Train. A row that
// differs when it is read again is an error.
type OfSource interface {
	Method
	RowsAtOnce() int
}

// Holding is a Method over rows that are held elsewhere, such as by the shards of package pbnn/shards. Fit is given no
// parts for it.
type Holding interface {
	Method
	// Join asks the holders for what they have. It returns the method, which may keep what it has learnt, and the data
	// that Held makes of the model.
	Join(ctx context.Context, model bayes.Model) (Method, *Data, error)
}

// From is a method that continues a trained posterior, such as chains after a training by package ohsmc: it samples the
// stochastic parameters, phi, given the rows of the training part, with the posterior's model, shared parameters, psi,
// and standardisation. Chains begin at its particles, drawn by their weights. The model that Fit is given is left
// empty.
type From struct {
	Trained *bayes.Posterior
	Method  OfTrained
}

// Title implements Method.
func (f From) Title() string { return f.Method.Title() }

// Prepare implements Method. Fit does not call it: it prepares From.Method, for a job with Trained.
func (f From) Prepare(j *Job) (Method, error) { return f.Method.Prepare(j) }

// Run implements Method.
func (f From) Run(ctx context.Context, j *Job) (*Result, error) { return f.Method.Run(ctx, j) }

// Fit runs a method on a model and the training part of the data. Features, and the target of a regression, are
// standardised by the training part's means and standard deviations, unless Model.Scaling says otherwise; the posterior
// keeps these and predicts in raw units. If Model.Stochastic is not set all parameters are stochastic. A nil method is
// the default one, auto.Method{}, if the program imports package bayes/auto.
//
// A cancelled context is no error: Fit returns what the steps so far have found, with the status run.Cancelled. If
// there are no draws yet it returns no result, and an error that wraps the context's. If Observe fails, or a checkpoint
// cannot be written, as on a full disk, Fit returns the error together with the result so far. The status is then
// run.Stopped, or run.Completed if only the last checkpoint failed. With other errors there is no result. Errors wrap
// dataset.ErrMissingClass if a class has no row, and the errors that the method documents.
func Fit(
	ctx context.Context, model bayes.Model, method Method, parts dataset.Parts, settings run.Settings,
) (result *Result, err error) {
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
	ctx context.Context, problem density.Problem, method OfDensity, settings run.Settings,
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

// byDefault is the method that nil stands for.
var byDefault Method

// SetDefault says which method Fit takes where it is given nil. Package auto sets its own when it is imported.
func SetDefault(m Method) { byDefault = m }

// errNoMethod is of a nil method, without a default.
var errNoMethod = errors.New("fit: there is no method: import gobnn/bayes/auto, whose method is then the default, or " +
	"take one, such as ohsmc.OpenHorizon{}, pmcnet.PMC{} or " +
	"baseline.Ensemble{}")

// newJob checks everything that needs no graph, for Fit.
func newJob(
	ctx context.Context, model bayes.Model, method Method, parts dataset.Parts, settings run.Settings,
) (*Job, error) {
	if method = cmp.Or(method, byDefault); method == nil {
		return nil, errNoMethod
	}
	from, continues := method.(From)
	if continues {
		if err := from.check(model); err != nil {
			return nil, err
		}
		method = from.Method
	}
	j := newTimed()
	var err error
	holding, elsewhere := method.(Holding)
	switch owner := ownerOf(method); {
	case elsewhere && (parts.Train != nil || parts.Validation != nil || parts.Source != nil):
		err = fmt.Errorf("%s: there are rows among the parts, but those of %T are held elsewhere: leave the parts empty, "+
			"dataset.Parts{}", owner, method)
	case elsewhere && continues:
		err = fmt.Errorf("%s: %T does not continue a trained posterior, as its rows are held elsewhere: leave out fit.From, "+
			"and sample all parameters", owner, method)
	case elsewhere:
		method, j.Data, err = holding.Join(ctx, AllByDefault(model))
	case continues:
		j.Data, err = of(owner, from.Trained, parts.Train)
	case parts.Source != nil:
		err = j.streams(method, model, parts)
	default:
		j.Data, err = New(owner, AllByDefault(model), parts)
	}
	if err == nil && parts.TrainHash != "" && j.Source == nil {
		err = j.checkHash(parts.TrainHash)
	}
	if err == nil {
		err = j.Bound.CheckSampled()
	}
	if err == nil && continues {
		j.Parts = parts
		err = j.identify(from.Trained)
	}
	if err != nil {
		return nil, err
	}
	if _, ok := method.(OfDensity); ok && j.Trained == nil {
		if err := j.SampleAll(); err != nil {
			return nil, err
		}
	}
	return j, j.prepare(method, settings)
}

// streams joins the job with rows that do not fit in memory.
func (j *Job) streams(method Method, model bayes.Model, parts dataset.Parts) (err error) {
	owner := ownerOf(method)
	of, ok := method.(OfSource)
	switch {
	case !ok:
		return fmt.Errorf("%s: the training rows are in Parts.Source, and %T needs them in memory, in Parts.Train: "+
			"baseline.Ensemble{} and fbnn.CES{} read them in blocks", owner, method)
	case parts.Train != nil:
		return fmt.Errorf("%s: Parts has training rows in memory beside Parts.Source: leave out Parts.Train", owner)
	}
	j.unread = of
	if j.Data, err = streamed(owner, AllByDefault(model), parts.Source); err != nil {
		return err
	}
	j.Parts.TrainHash = parts.TrainHash
	if parts.Validation == nil {
		return nil
	}
	j.Parts.Validation = parts.Validation
	return j.checkBeside(parts.Validation)
}

// checkBeside is an error if a part in memory is not of the kind of the source's rows.
func (d *Data) checkBeside(part *dataset.Dataset) error {
	if err := check(d.Owner, part); err != nil {
		return err
	}
	if part.Dims() != d.Source.Dims() || len(part.TargetNames()) != d.Source.Targets() {
		return fmt.Errorf("%s: the source has %d features and %d targets, and the data %q beside it %d and %d", d.Owner,
			d.Source.Dims(), d.Source.Targets(), part.Name, part.Dims(), len(part.TargetNames()))
	}
	if named, ok := d.raw.(dataset.Named); ok {
		features, targets := named.Names()
		if err := part.SameOrder(features, targets, nil); err != nil {
			return fmt.Errorf("%s: %w", d.Owner, err)
		}
	}
	if part.Extras() != (dataset.Extras{}) {
		return fmt.Errorf("%s: the data %q have Weights, Exposure or Censored targets, which a source has not: set them to "+
			"nil", d.Owner, part.Name)
	}
	return d.checkTask(part)
}

// check is an error if there is no posterior to continue, or a model beside it.
func (f From) check(model bayes.Model) error {
	if f.Method == nil {
		return errors.New("fit: From.Method is nil: take a method that samples, such as mcmc.Chains{}")
	}
	owner := ownerOf(f.Method)
	if f.Trained == nil {
		return fmt.Errorf("%s: there is no trained posterior: it is nil", owner)
	}
	if model.Network != nil || model.Likelihood != nil {
		return fmt.Errorf("%s: there are a model and a trained posterior to continue, which has its own: leave the model "+
			"empty, bayes.Model{}", owner)
	}
	return nil
}

// identify notes which trained posterior the job continues.
func (j *Job) identify(trained *bayes.Posterior) error {
	draws, err := trained.Draws()
	if err != nil {
		return fmt.Errorf("%s: %w", j.Owner, err)
	}
	for _, t := range []*tensors.Tensor{draws.Phi, draws.Psi} {
		if t == nil {
			continue
		}
		digest, err := run.Digest(t)
		if err != nil {
			return fmt.Errorf("%s: the trained posterior: %w", j.Owner, err)
		}
		j.trained += digest
	}
	return nil
}

// newSampling is newJob for Sample.
func newSampling(problem density.Problem, method OfDensity, settings run.Settings) (*Job, error) {
	if method == nil {
		return nil, errors.New("fit: there is no method: take one that samples a log-density, such as mcmc.Chains{}, " +
			"smc.Tempered{} or pmcnet.PMC{}")
	}
	owner := ownerOf(method)
	if err := limits.Check(owner+": Problem",
		limits.Field("Dim", problem.Dim, problem.Dim >= 1, "at least 1"),
		limits.Field("Target", "nil", problem.Target != nil, "a function that builds the log-density"),
	); err != nil {
		return nil, err
	}
	if settings.Observe != nil {
		return nil, fmt.Errorf("%s: Settings.Observe is set: a log-density has no posterior to show: leave it out, and use "+
			"fit.SampleSteps or Settings.Progress", owner)
	}
	j := newTimed()
	j.Data, j.problem = &Data{Owner: owner}, &problem
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
	if settings.Engine == nil && j.Trained != nil {
		settings.Engine = j.Trained.Engine()
	}
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
	if j.Devices > 1 && !j.shares {
		return fmt.Errorf("%s: Settings.Devices is %d: %T runs on one device: leave it out", j.Owner, j.Devices, method)
	}
	return j.describe(prepared)
}

// describe makes a prepared method the job's.
func (j *Job) describe(prepared Method) (err error) {
	if j.identity, err = described(prepared); err != nil {
		return err
	}
	j.method, j.described = prepared, j.identity
	if j.Checkpoint != "" {
		if err := run.CheckWritten(prepared); err != nil {
			return fmt.Errorf("fit: Settings.Checkpoint is set: %w", err)
		}
	}
	return nil
}

// run runs the prepared method, and makes the posterior of its draws.
func (j *Job) run(ctx context.Context) (*Result, error) {
	if j.unread != nil {
		if err := j.read(ctx); err != nil {
			return nil, err
		}
	}
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
	if failed := j.complete(result); failed != nil {
		return nil, errors.Join(err, failed)
	}
	result.Warnings = append(result.Warnings, j.doubts(ctx, result.Posterior)...)
	if p := result.Posterior; p != nil { // its file keeps them
		result.Posterior = p.WithDoubts(string(result.Status), result.Warnings)
	}
	if result.Elapsed == 0 {
		result.Elapsed = j.Elapsed()
	}
	return result, err
}

// Position is where a run stands after a step, as Steps yields it. It is valid until the next step.
type Position struct {
	run.Progress
	Result  *Result // nil until the run has ended
	machine run.Machine
}

// Now is the result that the run would have if it ended here, with an empty status; an error if the method has none
// before its end.
func (p Position) Now() (*Result, error) {
	if p.Result != nil {
		return p.Result, nil
	}
	if m, ok := p.machine.(interface{ Now() (*Result, error) }); ok {
		return m.Now()
	}
	return nil, errors.New("fit: this method has no result before its end")
}

// Steps is Fit for a range loop of your own: it yields after each step, and once more at the end, with the result.
// Leaving the loop ends the run as a cancelled context does: the checkpoint is written, if one is set, and Fit or Steps
// with the same settings resume from it, bit for bit. An error of Fit is yielded last.
func Steps(
	ctx context.Context, model bayes.Model, method Method, parts dataset.Parts, settings run.Settings,
) iter.Seq2[Position, error] {
	return steps(ctx, func(ctx context.Context) (*Result, error) { return Fit(ctx, model, method, parts, settings) })
}

// SampleSteps is Sample for a range loop of your own, as Steps is Fit.
func SampleSteps(
	ctx context.Context, problem density.Problem, method OfDensity, settings run.Settings,
) iter.Seq2[Position, error] {
	return steps(ctx, func(ctx context.Context) (*Result, error) { return Sample(ctx, problem, method, settings) })
}

func steps(ctx context.Context, call func(context.Context) (*Result, error)) iter.Seq2[Position, error] {
	return func(yield func(Position, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		left := false
		result, err := call(run.Watched(ctx, func(p run.Progress, m run.Machine) {
			if !left && !yield(Position{Progress: p, machine: m}, nil) {
				left = true
				cancel()
			}
		}))
		if !left {
			yield(Position{Result: result}, err)
		}
	}
}

package fit

import (
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
)

// This file is the door: what Fit and Sample check before a method runs.

// newJob checks everything that needs no graph, for Fit.
func newJob(
	ctx context.Context, model bayes.Model, method Method, parts dataset.Parts, settings run.Settings,
) (*Job, error) {
	if method == nil {
		return nil, errors.New("fit: there is no method: take one, such as auto.Method{}, ohsmc.OpenHorizon{}, " +
			"pmcnet.PMC{} or baseline.Ensemble{}")
	}
	from, continues := method.(From)
	if continues {
		method = from.Method
	}
	j, owner := newJobOf(method), ownerOf(method)
	var err error
	switch {
	case continues:
		err = j.continues(from.Trained, model, parts)
	case j.takes.Elsewhere != nil && (parts.Train != nil || parts.Validation != nil || parts.Source != nil):
		err = fmt.Errorf("%s: there are rows among the parts, but those of %T are held elsewhere: leave the parts empty, "+
			"dataset.Parts{}", owner, method)
	case j.takes.Elsewhere != nil:
		j.method, j.Data, err = j.takes.Elsewhere(ctx, allByDefault(model))
	case parts.Source != nil:
		err = j.streams(owner, model, parts)
	default:
		j.Data, err = New(owner, allByDefault(model), parts)
	}
	if err == nil && parts.TrainHash != "" && j.Source == nil {
		err = j.checkHash(parts.TrainHash)
	}
	if err == nil && j.takes.Density && j.Trained == nil {
		err = j.SampleAll()
	}
	if err != nil {
		return nil, err
	}
	return j, j.prepare(settings)
}

// continues joins the job with a trained posterior and rows.
func (j *Job) continues(trained *bayes.Posterior, model bayes.Model, parts dataset.Parts) (err error) {
	if j.method == nil {
		return errors.New("fit: From.Method is nil: take a method that samples, such as mcmc.Chains{}")
	}
	owner := ownerOf(j.method)
	switch {
	case !j.takes.Trained:
		return fmt.Errorf("%s: %T does not continue a trained posterior: take a method that samples, of rows in memory, "+
			"such as mcmc.Chains{}, or leave out fit.From", owner, j.method)
	case trained == nil:
		return fmt.Errorf("%s: there is no trained posterior: it is nil", owner)
	case model.Network != nil || model.Likelihood != nil:
		return fmt.Errorf("%s: there are a model and a trained posterior to continue, which has its own: leave the model "+
			"empty, bayes.Model{}", owner)
	}
	if j.Data, err = of(owner, trained, parts.Train); err != nil {
		return err
	}
	j.Parts = parts
	draws, err := trained.Draws()
	if err != nil {
		return fmt.Errorf("%s: %w", owner, err)
	}
	for _, t := range []*tensors.Tensor{draws.Phi, draws.Psi} {
		if t == nil {
			continue
		}
		digest, err := run.Digest(t)
		if err != nil {
			return fmt.Errorf("%s: the trained posterior: %w", owner, err)
		}
		j.trained += digest
	}
	return nil
}

// streams joins the job with rows that do not fit in memory.
func (j *Job) streams(owner string, model bayes.Model, parts dataset.Parts) (err error) {
	switch {
	case j.takes.RowsAtOnce == 0:
		return fmt.Errorf("%s: the training rows are in Parts.Source, and %T needs them in memory, in Parts.Train: "+
			"baseline.Ensemble{} and fbnn.CES{} read them in blocks", owner, j.method)
	case parts.Train != nil:
		return fmt.Errorf("%s: Parts has training rows in memory beside Parts.Source: leave out Parts.Train", owner)
	}
	if j.Data, err = streamed(owner, allByDefault(model), parts.Source); err != nil {
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

// newSampling is newJob for Sample.
func newSampling(problem density.Problem, method Method, settings run.Settings) (*Job, error) {
	const densities = "take one that samples a log-density, such as mcmc.Chains{}, smc.Tempered{} or pmcnet.PMC{}"
	if method == nil {
		return nil, errors.New("fit: there is no method: " + densities)
	}
	j, owner := newJobOf(method), ownerOf(method)
	if !j.takes.Density {
		return nil, fmt.Errorf("%s: %T does not sample a log-density: %s", owner, method, densities)
	}
	if err := limits.Check(owner+": Problem",
		limits.Field("Dim", problem.Dim, problem.Dim >= 1, "at least 1"),
		limits.Field("Target", "nil", problem.Target != nil, "a function that builds the log-density"),
	); err != nil {
		return nil, err
	}
	if settings.Observe != nil {
		return nil, fmt.Errorf("%s: Settings.Observe is set: a log-density has no posterior to show: leave it out, and use "+
			"fit.Now or Settings.Progress", owner)
	}
	j.Data, j.problem = &Data{Owner: owner}, &problem
	return j, j.prepare(settings)
}

// ownerOf is the package of a method, with which messages begin.
func ownerOf(method Method) string {
	if method == nil {
		return "fit"
	}
	t := reflect.TypeOf(method)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return path.Base(t.PkgPath())
}

// prepare fills in the settings' and the method's defaults.
func (j *Job) prepare(settings run.Settings) (err error) {
	if settings.Engine == nil && j.Trained != nil {
		settings.Engine = j.Trained.Origin().Engine
	}
	if j.Settings, err = settings.Prepare(); err != nil {
		return err
	}
	prepared, err := j.method.Prepare(j)
	if err != nil {
		return err
	}
	if prepared == nil {
		return fmt.Errorf("fit: Prepare of %T gives no method", j.method)
	}
	if j.Devices > 1 && !j.shares {
		return fmt.Errorf("%s: Settings.Devices is %d: %T runs on one device: leave it out", j.Owner, j.Devices, j.method)
	}
	j.asGiven = j.method
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

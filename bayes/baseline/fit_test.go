package baseline

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
)

// Settings are a training's and its run's in one, as the tests of this package write them.
type Settings struct {
	Epochs, BatchSize, ValidateEvery, Patience int
	Optimiser                                  train.Adam

	Seed         uint64
	DType        compute.DType
	Engine       *compute.Engine
	Checkpoint   string
	Replace      bool
	Progress     func(run.Progress)
	Observe      func(step int, now *bayes.Posterior) error
	ObserveEvery int
}

func (s Settings) training() Training {
	return Training{
		Epochs: s.Epochs, BatchSize: s.BatchSize, ValidateEvery: s.ValidateEvery, Patience: s.Patience,
		Optimiser: s.Optimiser,
	}
}

func (s Settings) run() run.Settings {
	return run.Settings{
		Seed: s.Seed, DType: s.DType, Engine: s.Engine, Checkpoint: s.Checkpoint, Replace: s.Replace, Progress: s.Progress,
		Observe: s.Observe, ObserveEvery: s.ObserveEvery,
	}
}

// Result is a run's result with its details.
type Result struct {
	*fit.Result
	*train.Details
	Chains *mcmc.Details
}

// with is a method with these settings of its training.
func with(m fit.Method, t Training) fit.Method {
	v := reflect.New(reflect.TypeOf(m)).Elem()
	v.Set(reflect.ValueOf(m))
	if f := v.FieldByName("Training"); f.IsValid() {
		f.Set(reflect.ValueOf(t))
	}
	return v.Interface().(fit.Method)
}

// nameOf is a method's name, for messages.
func nameOf(m fit.Method) string { return fmt.Sprintf("%T", m) }

// Fit is fit.Fit for a method of this package.
func Fit(
	ctx context.Context, model bayes.Model, method fit.Method, parts dataset.Parts, s Settings,
) (*Result, error) {
	r, err := fit.Fit(ctx, model, with(method, s.training()), parts, s.run())
	if r == nil {
		return nil, err
	}
	return &Result{r, fit.Details[*train.Details](r), fit.Details[*mcmc.Details](r)}, err
}

// spied is a method that does nothing but to show its job.
type spied struct {
	of   fit.Method
	seen func(j *fit.Job, prepared fit.Method)
}

var errSpied = errors.New("spied")

func (s spied) Title() string { return s.of.Title() }
func (s spied) Prepare(j *fit.Job) (fit.Method, error) {
	prepared, err := s.of.Prepare(j)
	return spied{prepared, s.seen}, err
}
func (s spied) Run(_ context.Context, j *fit.Job) (*fit.Result, error) {
	s.seen(j, s.of)
	return nil, errSpied
}

// jobOf returns a job for a method, and the method as Prepare gives it.
func jobOf[M fit.Method](
	t testing.TB, model bayes.Model, method M, parts dataset.Parts, s Settings,
) (j *fit.Job, prepared M) {
	t.Helper()
	_, err := fit.Fit(context.Background(), model, spied{with(method, s.training()), func(of *fit.Job, m fit.Method) {
		j, prepared = of, m.(M)
	}}, parts, s.run())
	if !errors.Is(err, errSpied) {
		t.Fatal(err)
	}
	return j, prepared
}

// trained trains a learner for a job, from a start if there is one.
func trained(
	t testing.TB, j *fit.Job, training Training, l train.Learner, start []float64,
) (*train.Details, *fit.Result) {
	t.Helper()
	r, err := train.Run(context.Background(), j, training, train.Task{
		Learner: l, Train: train.Of(j, j.Parts.Train), Validation: train.Of(j, j.Parts.Validation), Start: start,
	})
	if err != nil {
		t.Fatal(err)
	}
	return fit.Details[*train.Details](r), r
}

package ohsmc

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/particles"
)

// steps is a training whose steps a test makes. Close it at the end.
type steps struct {
	*particles.Session // of the step that was made last; of the first before it
	*fit.Data
	core    *particles.Core
	Records []particles.StepRecord

	wait  func(struct{}) bool // until the next step is to be made; false: none is
	next  func() (struct{}, bool)
	close func()
	err   error // of fit.Fit
}

// Step makes the next step.
func (s *steps) Step() error {
	if _, made := s.next(); made {
		return nil
	}
	return cmp.Or(s.err, errors.New("all steps are made"))
}

// all is the number of steps of the whole training.
func (s *steps) all() int { return s.Epochs * s.Batches.PerEpoch() }

// begun is a training before its first step. Close it at the end.
func begun(model bayes.Model, a fit.Method, parts dataset.Parts, settings Settings) (*steps, error) {
	s := &steps{}
	s.next, s.close = iter.Pull(func(yield func(struct{}) bool) {
		s.wait = yield
		ctx := context.WithValue(context.Background(), stepsKey{}, s)
		_, s.err = fit.Fit(ctx, model, waiting{with(a, settings.training())}, parts, settings.run())
	})
	if err := s.Step(); err != nil {
		return nil, err
	}
	return s, nil
}

type stepsKey struct{}

var errLeft = errors.New("no more steps are wanted")

// waiting is an algorithm that waits before its first step, and after each. What it waits for is in the context, so
// that what is compiled for one training serves others.
type waiting struct{ fit.Method }

func (w waiting) Prepare(j *fit.Job) (fit.Method, error) {
	var err error
	w.Method, err = w.Method.Prepare(j)
	return w, err
}

func (w waiting) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	ctx.Value(stepsKey{}).(*steps).Data = j.Data
	return particles.Run(ctx, j, trainingOf(w.Method), w)
}

func (w waiting) Compile(c *particles.Core) (particles.Stepper, error) {
	s, err := w.Method.(particles.Algorithm).Compile(c)
	if err != nil {
		return nil, err
	}
	return &waitingStepper{s, c}, nil
}

type waitingStepper struct {
	particles.Stepper
	core *particles.Core
}

func (w *waitingStepper) Advance(ctx context.Context, s *particles.Session) (particles.StepRecord, error) {
	of := ctx.Value(stepsKey{}).(*steps)
	of.Session, of.core = s, w.core
	if s.Step == 0 && !of.wait(struct{}{}) {
		return particles.StepRecord{}, errLeft
	}
	record, err := w.Stepper.Advance(ctx, s)
	if err != nil {
		return record, err
	}
	of.Records = append(of.Records, record)
	if !of.wait(struct{}{}) {
		return record, errLeft
	}
	return record, nil
}

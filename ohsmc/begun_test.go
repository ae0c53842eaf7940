package ohsmc

import (
	"context"
	"errors"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
)

// steps is a training whose steps a test makes. Close it at the end.
type steps struct {
	*training
	machine run.Machine
	*fit.Trail[StepRecord]
	state *compute.State
	close func()
}

// Step makes the next step.
func (s *steps) Step(ctx context.Context) error { return s.machine.Step(ctx) }

// begun is a training before its first step. Close it at the end.
func begun(model bayes.Model, a fit.Method, parts dataset.Parts, settings Settings) (*steps, error) {
	caught := &catcher{Method: with(a, settings.training())}
	_, err := fit.Fit(context.Background(), model, caught, parts, settings.run())
	if !errors.Is(err, errCaught) {
		return nil, err
	}
	return caught.steps, nil
}

var errCaught = errors.New("caught")

// catcher is a method that begins a training, and ends.
type catcher struct {
	fit.Method
	steps *steps
}

func (c *catcher) Prepare(j *fit.Job) (fit.Method, error) {
	var err error
	c.Method, err = c.Method.Prepare(j)
	return c, err
}

func (c *catcher) Run(ctx context.Context, j *fit.Job) (result *fit.Result, err error) {
	r, err := newTraining(j, trainingOf(c.Method), c.Method.(Algorithm))
	if err != nil {
		return nil, err
	}
	c.steps = &steps{training: r}
	c.steps.machine, c.steps.Trail, c.steps.close = r.loop().Machine(j)
	if err := c.steps.machine.Begin(ctx); err != nil {
		return nil, err
	}
	c.steps.state = c.steps.State()
	return nil, errCaught
}

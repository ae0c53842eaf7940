package ohsmc

import (
	"context"
	"errors"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
)

// begun is a training before its first step. Close it at the end.
func begun(model bayes.Model, a fit.Method, parts dataset.Parts, settings Settings) (*training, error) {
	caught := &catcher{Method: with(a, settings.training())}
	_, err := fit.Fit(context.Background(), model, caught, parts, settings.run())
	if !errors.Is(err, errCaught) {
		return nil, err
	}
	return caught.training, nil
}

var errCaught = errors.New("caught")

// catcher is a method that begins a training, and ends.
type catcher struct {
	fit.Method
	training *training
}

func (c *catcher) Prepare(j *fit.Job) (fit.Method, error) {
	var err error
	c.Method, err = c.Method.Prepare(j)
	return c, err
}

func (c *catcher) Run(ctx context.Context, j *fit.Job) (result *fit.Result, err error) {
	if c.training, err = newTraining(j, trainingOf(c.Method), c.Method.(Algorithm)); err != nil {
		return nil, err
	}
	if err := c.training.Begin(ctx); err != nil {
		return nil, err
	}
	return nil, errCaught
}

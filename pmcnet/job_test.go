package pmcnet

import (
	"context"
	"errors"
	"testing"

	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
)

// around is called in place of an iteration of a PMC, which step makes.
type around func(a PMC, at *fit.Trail[IterationRecord], step func() error) error

// inJob is a PMC with a function around its iterations.
type inJob struct {
	PMC
	around
}

func (i inJob) Prepare(j *fit.Job) (fit.Method, error) {
	a, err := i.PMC.Prepare(j)
	if err != nil {
		return nil, err
	}
	return inJob{a.(PMC), i.around}, nil
}

func (i inJob) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	loop, err := i.loop(ctx, j)
	if err != nil {
		return nil, err
	}
	step := loop.Step
	loop.Step = func(ctx context.Context, at *fit.Trail[IterationRecord]) error {
		return i.around(i.PMC, at, func() error { return step(ctx, at) })
	}
	return loop.Run(ctx, j)
}

var errDone = errors.New("done")

// byStep runs a PMC with a function around its iterations, which may end it by errDone.
func byStep(t testing.TB, problem density.Problem, a PMC, settings run.Settings, do around) {
	t.Helper()
	if _, err := fit.Sample(t.Context(), problem, inJob{a, do}, settings); err != nil && !errors.Is(err, errDone) {
		t.Fatal(err)
	}
}

package pmcnet

import (
	"context"
	"errors"
	"testing"

	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
)

// inJob makes the iterations of a PMC one by one, in the job that Prepare gave it.
type inJob struct {
	PMC
	do func(a PMC, machine run.Machine, at *fit.Trail[IterationRecord]) error
}

var errDone = errors.New("done")

func (i inJob) Prepare(j *fit.Job) (fit.Method, error) {
	a, err := i.PMC.Prepare(j)
	if err != nil {
		return nil, err
	}
	return inJob{a.(PMC), i.do}, nil
}

func (i inJob) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	loop, err := i.loop(ctx, j)
	if err != nil {
		return nil, err
	}
	machine, at, free := loop.Machine(j)
	defer free()
	if err := machine.Begin(ctx); err != nil {
		return nil, err
	}
	if err := i.do(i.PMC, machine, at); err != nil {
		return nil, err
	}
	return nil, errDone
}

// byStep calls a function with a PMC's run before its first iteration.
func byStep(
	t testing.TB, problem density.Problem, a PMC, settings run.Settings,
	do func(a PMC, machine run.Machine, at *fit.Trail[IterationRecord]) error,
) {
	t.Helper()
	if _, err := fit.Sample(t.Context(), problem, inJob{a, do}, settings); !errors.Is(err, errDone) {
		t.Fatal(err)
	}
}

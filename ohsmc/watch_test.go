package ohsmc

import (
	"context"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
)

// fitted is a fit that must succeed, on the Go backend unless the settings name an engine.
func fitted(
	t testing.TB, model bayes.Model, method fit.Method, parts dataset.Parts, settings run.Settings,
) (*fit.Result, *particles.Details) {
	t.Helper()
	if settings.Engine == nil {
		settings.Engine = computetest.Go(t)
	}
	return fittest.Fit[*particles.Details](t, model, method, parts, settings)
}

// look is called with a run before each step, and after it with the step's record.
type look func(s *particles.Session, made *particles.StepRecord)

// watched is a method whose steps are looked at. What looks is in the context, so that what is compiled for one run
// serves others.
type watched struct{ fit.Method }

type lookKey struct{}

func with(ctx context.Context, l look) context.Context { return context.WithValue(ctx, lookKey{}, l) }

func (w watched) Prepare(j *fit.Job) (m fit.Method, err error) {
	w.Method, err = w.Method.Prepare(j)
	return w, err
}

func (w watched) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	var t particles.Training
	switch a := w.Method.(type) {
	case OpenHorizon:
		t = a.Training
	case Guided:
		t = a.Training
	case SMC:
		t = a.Training
	}
	return particles.Run(ctx, j, t, w)
}

func (w watched) Compile(c *particles.Core) (particles.Stepper, error) {
	s, err := w.Method.(particles.Algorithm).Compile(c)
	return watchedStepper{s}, err
}

type watchedStepper struct{ particles.Stepper }

func (w watchedStepper) Advance(ctx context.Context, s *particles.Session) ([]particles.StepRecord, error) {
	l := ctx.Value(lookKey{}).(look)
	l(s, nil)
	records, err := w.Stepper.Advance(ctx, s)
	for i := range records {
		l(s, &records[i])
	}
	return records, err
}

// values are the numbers of an entry of a run's state.
func values(t testing.TB, s *particles.Session, name string) []float64 {
	t.Helper()
	host, err := s.State.Host(name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := compute.Float64s(host[name])
	if err != nil {
		t.Fatal(err)
	}
	return v
}

package fit_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// counter records the numbers of its steps, whose sums are known.
type counter struct {
	Steps, StopAt int
	width         int // of the state: no setting, like the code of a user's own network
}

// counted is the record of a step.
type counted struct{ Number int }

func (counter) Title() string                          { return "a count of steps" }
func (c counter) Prepare(*fit.Job) (fit.Method, error) { return c, nil }
func (c counter) MarshalJSON() ([]byte, error)         { return fmt.Appendf(nil, "%d", c.Steps), nil }

// Run implements fit.Method.
func (c counter) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	loop := fit.Loop[counted]{
		Format: "test.counter/1", Steps: c.Steps, ObserveEvery: 1,
		Begin: func(context.Context) (*compute.State, func(), error) {
			state := compute.NewState(j.Engine)
			state.Set("phi", compute.Floats(j.DType, make([]float64, c.width), 1, c.width))
			return state, func() {}, nil
		},
		Step: func(_ context.Context, at *fit.Trail[counted]) error {
			if at.Step == c.StopAt {
				return run.Stop(errStop)
			}
			return at.Record(counted{at.Step + 1}, nil)
		},
		Progress: func(*fit.Trail[counted]) run.Progress { return run.Progress{} },
		Result: func(at *fit.Trail[counted]) (*fit.Result, error) {
			return &fit.Result{Status: at.Status, Draws: bayes.Draws{
				Phi: compute.Floats(j.DType, make([]float64, j.Bound.D), 1, j.Bound.D), LogWeights: []float64{0}}}, nil
		},
	}
	return loop.Run(ctx, j)
}

var errStop = errors.New("stopped by the test")

// A checkpoint is not gone on with where the state has another shape, since the code of a user's own part has changed.
func TestResumeOfOtherShape(t *testing.T) {
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All()}
	s := run.Settings{Engine: computetest.Go(t), Checkpoint: filepath.Join(t.TempDir(), "checkpoint")}
	for _, c := range []struct {
		width int
		says  string
	}{{3, "stopped by the test"}, {4, `its tensor "phi" is (Float32)[1, 3]: it must be (Float32)[1, 4]`}} {
		_, err := fit.Fit(t.Context(), model, counter{9, 5, c.width}, dataset.Parts{Train: plane(10)}, s)
		computetest.WantError(t, fmt.Sprint("a state of width ", c.width), err, c.says)
	}
}

package fit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
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

// counted is the record of steps.
type counted struct {
	Sum, Last int
	Mean      float64
}

func (counter) Title() string                          { return "a count of steps" }
func (c counter) Prepare(*fit.Job) (fit.Method, error) { return c, nil }
func (c counter) MarshalJSON() ([]byte, error)         { return fmt.Appendf(nil, "%d", c.Steps), nil }

// Run implements fit.Method. Its result's details are the trail.
func (c counter) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	loop := fit.Loop[counted]{
		Format: "test.counter/1", Steps: c.Steps, ObserveEvery: 1, Merge: func(a, b counted, share float64) counted {
			return counted{a.Sum + b.Sum, b.Last, a.Mean + (b.Mean-a.Mean)*share}
		},
		Begin: func(context.Context) (*compute.State, func(), error) {
			state := compute.NewState(j.Engine)
			state.Set("phi", compute.Floats(j.DType, make([]float64, c.width), 1, c.width))
			return state, func() {}, nil
		},
		Step: func(_ context.Context, at *fit.Trail[counted]) error {
			if at.Step == c.StopAt {
				return run.Stop(errStop)
			}
			return at.Record(counted{at.Step + 1, at.Step + 1, float64(at.Step + 1)}, nil)
		},
		Progress: func(*fit.Trail[counted]) run.Progress { return run.Progress{} },
		Result: func(at *fit.Trail[counted]) (*fit.Result, error) {
			kept := *at
			return &fit.Result{Status: at.Status, Details: []any{&kept}, Draws: bayes.Draws{
				Phi: compute.Floats(j.DType, make([]float64, j.Bound.D), 1, j.Bound.D), LogWeights: []float64{0}}}, nil
		},
	}
	return loop.Run(ctx, j)
}

var errStop = errors.New("stopped by the test")

// A long run keeps at most 65 536 records, each of as many steps as the others, whose sums and means are those of the
// steps, and a run that was stopped within a record goes on to the same ones. A short run has a record for each step.
func TestRecordsAreMerged(t *testing.T) {
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All()}
	for _, c := range []struct{ steps, stop, each, records int }{
		{1000, 501, 1, 1000}, {1 << 16, 3, 1, 1 << 16}, {1<<16 + 1, 1 << 16, 2, 1<<15 + 1}, {200_001, 100_001, 4, 50_001},
	} {
		s := run.Settings{Engine: computetest.Go(t), Checkpoint: filepath.Join(t.TempDir(), "checkpoint")}
		var last *fit.Trail[counted]
		for _, stop := range []int{c.stop, -1} { // the second goes on from the first
			result, err := fit.Fit(t.Context(), model, counter{c.steps, stop, 3}, dataset.Parts{Train: plane(10)}, s)
			if stop < 0 != (err == nil) || err != nil && !errors.Is(err, errStop) {
				t.Fatal(err)
			}
			last = fit.Details[*fit.Trail[counted]](result)
		}
		if last.Step != c.steps || len(last.Records) != c.records {
			t.Fatalf("%d steps: %d were made, in %d records, want %d", c.steps, last.Step, len(last.Records), c.records)
		}
		from, ends := 0, last.Ends()
		for i, r := range last.Records {
			to := min(from+c.each, c.steps)
			if want := (counted{(to - from) * (from + 1 + to) / 2, to, float64(from+1+to) / 2}); ends[i] != to ||
				r.Sum != want.Sum || r.Last != want.Last || math.Abs(r.Mean-want.Mean) > 1e-9*want.Mean {
				t.Fatalf("%d steps: record %d is %v and ends with %d, want %v", c.steps, i, r, ends[i], want)
			}
			from = to
		}
		if up := last.UpTo(c.each + 1); !slices.Equal(up, last.Records[:2]) {
			t.Errorf("%d steps: up to step %d there are the records %v", c.steps, c.each+1, up)
		}
	}
}

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

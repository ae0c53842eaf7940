package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// planes are J members that learn K outputs from d inputs, y = A x, by least squares: theta_j is A, [K, d] row by row.
// What an emulator is, in small: the targets are [N, K], and there is no bayes.Model.
type planes struct {
	members, inputs, outputs, rows int
	dtype                          compute.DType
}

func (p planes) Size() (int, int) { return p.members, p.inputs * p.outputs }
func (p planes) width() int       { return p.inputs * p.outputs }
func (p planes) Initial(rng random.Stream) *graph.Node {
	return rng.Normal(p.dtype, p.members, p.width())
}

// squares are the sums of squared errors of each member over the real rows, [J].
func (p planes) squares(theta *graph.Node, batch density.Batch) *graph.Node {
	a := graph.Reshape(theta, p.members, p.outputs, p.inputs)
	errs := graph.Sub(graph.Einsum("jki,ni->jnk", a, batch.X), graph.ExpandAxes(batch.Y, 0))
	errs = graph.ReduceSum(graph.Square(errs), 2) // [J, N]
	if batch.Count != nil {
		row := graph.Iota(errs.Graph(), errs.Shape(), 1)
		errs = graph.Where(graph.LessThan(row, batch.Count), errs, graph.ZerosLike(errs))
	}
	return graph.ReduceSum(errs, 1)
}

func (p planes) Objective(theta *graph.Node, batch density.Batch, _ random.Stream) (value, gradient *graph.Node) {
	scale := graph.Div(graph.ConstAs(theta, float64(p.rows)), batch.Count)
	value = graph.Mul(graph.MulScalar(p.squares(theta, batch), -.5), scale)
	return value, graph.Gradient(graph.ReduceAllSum(value), theta)[0]
}

func (p planes) Score(theta *graph.Node, batch density.Batch, _ random.Stream) *graph.Node {
	return graph.MulScalar(p.squares(theta, batch), .5/float64(batch.Y.Shape().Dim(0)))
}

// truth is A, [2, 3].
var truth = []float64{1, -2, .5, .25, 0, -1}

// exactRows are n rows of y = A x; asked counts how often they were asked for.
func exactRows(n int, asked *int) train.Rows {
	return train.Rows{Count: n, Tensors: func() (x, y *tensors.Tensor, err error) {
		*asked++
		var xs, ys []float64
		for i := range n {
			row := []float64{math.Sin(float64(i)), math.Cos(1.7 * float64(i)), math.Sin(.3*float64(i) + 1)}
			xs = append(xs, row...)
			for k := range 2 {
				ys = append(ys, truth[3*k]*row[0]+truth[3*k+1]*row[1]+truth[3*k+2]*row[2])
			}
		}
		return compute.Floats(compute.Float64, xs, n, 3), compute.Floats(compute.Float64, ys, n, 2), nil
	}}
}

func task(members, rows int, asked *int) train.Task {
	return train.Task{
		Learner: planes{members, 3, 2, rows, compute.Float64}, Train: exactRows(rows, asked),
		Identity: []run.Part{{Name: "rows", Value: "exact rows"}},
	}
}

// A learner of one's own, with several targets and no model, comes to the least squares solution from padded
// mini-batches, every member of it.
func TestFit(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		if dtype != compute.Float64 {
			return
		}
		asked := 0
		job := task(3, 20, &asked)
		job.Validation = exactRows(8, &asked)
		r, err := runs(t.Context(), alone{task: job, Training: train.Training{
			Epochs: 300, BatchSize: 7, Optimiser: train.Adam{Schedule: train.Exponential(.1, .5, 100)},
		}}, run.Settings{Engine: engine})
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != run.Completed || r.Steps != 900 || r.PerEpoch != 3 || len(r.Trace) != 900 || len(r.Validated) != 300 {
			t.Errorf("%s after %d steps of %d an epoch, %d records, %d validations",
				r.Status, r.Steps, r.PerEpoch, len(r.Trace), len(r.Validated))
		}
		for j := range 3 {
			computetest.Near(t, fmt.Sprint("member ", j), r.Theta[6*j:6*j+6], truth, 1e-3)
		}
		if c := r.Curves; len(c) != 2 || c[0].Name != fit.LossCurve || c[1].Steps[1] != 6 {
			t.Errorf("the curves are %+v", c)
		}
	})
}

// What is returned before the first validation is where training stands, not where it began.
func TestCancelledBeforeValidation(t *testing.T) {
	asked := 0
	job := task(1, 20, &asked)
	job.Validation, job.Start = exactRows(8, &asked), make([]float64, 6)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := runs(ctx, alone{task: job, Training: train.Training{Epochs: 5, BatchSize: 5},
		observe: func(step int, _ []float64) error {
			if step == 2 {
				cancel()
			}
			return nil
		},
	}, run.Settings{Engine: computetest.Go(t), ObserveEvery: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != run.Cancelled || r.Steps != 2 || slices.Equal(r.Theta, job.Start) {
		t.Errorf("%s after %d steps at %v", r.Status, r.Steps, r.Theta)
	}
}

// blind is a learner whose first member has no usable score.
type blind struct {
	planes
	score float64
}

func (b blind) Score(theta *graph.Node, batch density.Batch, rng random.Stream) *graph.Node {
	scores := b.planes.Score(theta, batch, rng)
	first := graph.Equal(graph.Iota(theta.Graph(), scores.Shape(), 0), graph.ZerosLike(scores))
	return graph.Where(first, graph.AddScalar(graph.ZerosLike(scores), b.score), scores)
}

// A member whose validation scores are never finite is trained all the same: what is returned is where its training
// ended, not where it began. The others are at their best.
func TestScoresNotFinite(t *testing.T) {
	asked := 0
	settings := run.Settings{Engine: computetest.Go(t)}
	job := alone{task: task(2, 20, &asked), Training: train.Training{Epochs: 3, BatchSize: 10}}
	last, err := runs(t.Context(), job, settings)
	if err != nil {
		t.Fatal(err)
	}
	job.task.Validation = exactRows(8, &asked)
	best, err := runs(t.Context(), job, settings)
	if err != nil {
		t.Fatal(err)
	}
	for _, score := range []float64{math.NaN(), math.Inf(1)} {
		job.task.Learner = blind{planes{2, 3, 2, 20, compute.Float64}, score}
		r, err := runs(t.Context(), job, settings)
		if err != nil {
			t.Fatal(err)
		}
		if want := slices.Concat(last.Theta[:6], best.Theta[6:]); !slices.Equal(r.Theta, want) || r.Best[0].Step != 0 {
			t.Errorf("with scores of %v: %v, best %+v, want %v", score, r.Theta, r.Best, want)
		}
	}
}

// A cancelled training goes on from its checkpoint to the same bits. A finished one is looked at without data or
// compiler. The target's unit moves the losses and scores that are returned, and not what is kept: a run in another
// unit goes on from the same file.
func TestResume(t *testing.T) {
	asked := 0
	engine := computetest.Go(t)
	settings := run.Settings{Engine: engine, Seed: 2}
	job := alone{task: task(2, 20, &asked), Training: train.Training{Epochs: 20, BatchSize: 6, Patience: 3}}
	job.task.Validation = exactRows(8, &asked)
	whole, err := runs(t.Context(), job, settings)
	if err != nil {
		t.Fatal(err)
	}
	job.unit = 1024
	settings.Checkpoint = filepath.Join(t.TempDir(), "c")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	settings.ObserveEvery, job.observe = 1, func(step int, _ []float64) error {
		if step == 9 {
			cancel()
		}
		return nil
	}
	first, err := runs(ctx, job, settings)
	if err != nil || first.Status != run.Cancelled || first.Steps != 9 || len(first.Validated) != 2 ||
		whole.Steps <= 9 {
		t.Fatalf("%v, %+v", err, first)
	}
	job.observe = nil
	shift := math.Log(job.unit)
	for i, v := range first.Validated {
		for m, score := range v.Scores {
			if score != whole.Validated[i].Scores[m]+shift {
				t.Errorf("validation %d: %v, and %v in another unit", i, whole.Validated[i], v)
			}
		}
	}
	for i, r := range first.Trace {
		if r.Loss != whole.Trace[i].Loss+shift {
			t.Errorf("step %d: a loss of %v, and %v in another unit", i+1, whole.Trace[i].Loss, r.Loss)
		}
	}
	job.unit = 0
	second, err := runs(t.Context(), job, settings)
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string, r trained) {
		t.Helper()
		if !slices.Equal(r.Theta, whole.Theta) || fmt.Sprint(r.Trace, r.Validated, r.Best,
			r.Status) != fmt.Sprint(whole.Trace, whole.Validated, whole.Best, whole.Status) {
			t.Errorf("%s is another run than the one that was not cancelled", what)
		}
	}
	same("what went on", second)
	asked = 0
	compiled := engine.Compiled()
	third, err := runs(t.Context(), job, settings)
	if err != nil {
		t.Fatal(err)
	}
	same("what was finished", third)
	if asked != 0 || engine.Compiled() != compiled {
		t.Errorf("a finished run asked for the data %d times and compiled %d times", asked, engine.Compiled()-compiled)
	}
}

// A checkpoint is of where its training began: another start, or none, is refused, and the same one is not.
func TestResumeFromOtherStart(t *testing.T) {
	asked := 0
	training := train.Training{Epochs: 2, BatchSize: 10}
	settings := run.Settings{Engine: computetest.Go(t)}
	settings.Checkpoint = filepath.Join(t.TempDir(), "c")
	for _, c := range []struct {
		start   []float64
		refused bool
	}{
		{slices.Repeat([]float64{.1}, 6), false}, {slices.Repeat([]float64{.1}, 6), false},
		{slices.Repeat([]float64{.2}, 6), true}, {nil, true},
	} {
		job := task(1, 20, &asked)
		job.Start = c.start
		_, err := runs(t.Context(), alone{task: job, Training: training}, settings)
		if errors.Is(err, run.ErrOtherRun) != c.refused || !c.refused && err != nil {
			t.Errorf("from %v: %v", c.start, err)
		}
	}
}

func TestBadSettings(t *testing.T) {
	asked := 0
	for want, spoil := range map[string]func(*alone){
		"mine: Training.Epochs is -1":        func(a *alone) { a.Epochs = -1 },
		"mine: Training.BatchSize is 30":     func(a *alone) { a.BatchSize = 30 },
		"Task.Start has 5 numbers":           func(a *alone) { a.task.Start = make([]float64, 5) },
		"1 members of 6 each":                func(a *alone) { a.task.Start = make([]float64, 5) },
		"the rows of the training part":      func(a *alone) { a.task.Train = train.Rows{} },
		"mine: Optimiser.Schedule.Rate is -": func(a *alone) { a.Optimiser.Schedule.Rate = -1 },
		"mine: Training.ValidateEvery is":    func(a *alone) { a.ValidateEvery = -1 },
	} {
		job := alone{task: task(1, 20, &asked)}
		spoil(&job)
		_, err := runs(t.Context(), job, run.Settings{Engine: computetest.Go(t)})
		computetest.WantError(t, want, err, want)
	}
}

// Where no member has a finite gradient training ends, with the cure.
func TestDiverged(t *testing.T) {
	asked := 0
	job := task(1, 20, &asked)
	job.Start = slices.Repeat([]float64{1e300}, 6)
	_, err := runs(t.Context(), alone{task: job}, run.Settings{Engine: computetest.Go(t)})
	if computetest.WantError(t, "a far start", err, "step 1 of 200: training diverged: of 1"); !errors.Is(err,
		train.ErrDiverged) {
		t.Error(err)
	}
}

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/tensorfile"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// adder adds the step's number to a sum, which it keeps as a tensor.
type adder struct {
	step, steps int
	sum         float64
	begun       int
	seed        string
	before      func(ctx context.Context, step int) error // what a step does first
}

type adderHead struct {
	Step int `json:"step"`
}

func (a *adder) Identity() ([]Part, error) {
	return []Part{{"data", "abc"}, {"seed", a.seed}}, nil
}

func (a *adder) Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error {
	var at adderHead
	if err := json.Unmarshal(head, &at); err != nil {
		return err
	}
	if at.Step < 0 || at.Step > a.steps {
		return fmt.Errorf("it stands at step %d of %d", at.Step, a.steps)
	}
	t, err := Tensor(kept, "sum", shapes.Make(compute.Float64, 1))
	if err != nil {
		return err
	}
	flat, err := compute.Float64s(t)
	if err != nil {
		return err
	}
	a.step, a.sum = at.Step, flat[0]
	return nil
}

func (a *adder) Begin(context.Context) error {
	a.begun++
	return nil
}

func (a *adder) Step(ctx context.Context) error {
	if a.before != nil {
		if err := a.before(ctx, a.step+1); err != nil {
			return err
		}
	}
	a.step++
	a.sum += 1 / float64(a.step)
	return nil
}

func (a *adder) Status() Status {
	if a.step == a.steps {
		return Completed
	}
	return ""
}

func (a *adder) Keep() (any, map[string]*tensors.Tensor, error) {
	return adderHead{a.step}, map[string]*tensors.Tensor{"sum": tensors.FromValue([]float64{a.sum})}, nil
}

func (a *adder) Progress() Progress {
	return Progress{Step: a.step, Steps: a.steps, Scores: []Score{{"sum", a.sum}}}
}

func options(t *testing.T) Options {
	return Options{Owner: "test", Checkpoint: filepath.Join(t.TempDir(), "run"), Format: "test/2", Every: time.Nanosecond}
}

// sumTo is what an adder ends at.
func sumTo(steps int) float64 {
	a := &adder{steps: steps}
	for a.Status() == "" {
		a.Step(context.Background()) //nolint:errcheck // there is no before
	}
	return a.sum
}

// A checkpoint is of what the run began with, whatever the caller makes of its data and settings on the way.
func TestIdentityOfTheBeginning(t *testing.T) {
	o := options(t)
	a := &adder{steps: 3, seed: "1"}
	a.before = func(context.Context, int) error {
		a.seed = "2"
		return nil
	}
	computetest.NoError(t, New(a, o).Loop(context.Background()))
	for seed, other := range map[string]bool{"1": false, "2": true} {
		if err := New(&adder{steps: 3, seed: seed}, o).Loop(context.Background()); errors.Is(err, ErrOtherRun) != other {
			t.Errorf("seed %s: %v", seed, err)
		}
	}
}

// A run goes on with as many threads as it began with alone; a finished one is read with any.
func TestThreads(t *testing.T) {
	finished, begun := options(t), options(t)
	loop := func(o Options, threads, stopAt int) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o.Threads = threads
		return New(&adder{steps: 4, before: func(_ context.Context, step int) error {
			if step == stopAt {
				cancel()
			}
			return nil
		}}, o).Loop(ctx)
	}
	computetest.NoError(t, errors.Join(loop(finished, 2, 0), loop(begun, 2, 2)))
	if err := loop(begun, 1, 0); !errors.Is(err, ErrOtherRun) || !strings.Contains(err.Error(), "NPROC=2") {
		t.Errorf("an unfinished run: %v", err)
	}
	if err := errors.Join(loop(finished, 1, 0), loop(begun, 2, 0)); err != nil {
		t.Errorf("a finished run, or with as many threads: %v", err)
	}
}

// A run that is cancelled, by the context or by leaving the loop, goes on from its file to the bits of an uninterrupted
// one, in the same session and in another; what it has run for adds up.
func TestGoesOn(t *testing.T) {
	const steps = 20
	for name, interrupt := range map[string]func(*Run) error{
		"context": func(r *Run) error {
			ctx, cancel := context.WithCancel(context.Background())
			r.machine.(*adder).before = func(_ context.Context, step int) error {
				if step == 8 {
					cancel()
				}
				return nil
			}
			return r.Loop(ctx)
		},
		"a step that sees the context": func(r *Run) error {
			ctx, cancel := context.WithCancel(context.Background())
			r.machine.(*adder).before = func(ctx context.Context, step int) error {
				if step == 9 {
					cancel()
				}
				return ctx.Err()
			}
			return r.Loop(ctx)
		},
		"a stop by the context": func(r *Run) error {
			ctx, cancel := context.WithCancel(context.Background())
			r.machine.(*adder).before = func(ctx context.Context, step int) error {
				if step == 9 {
					cancel()
					return Stop(errors.New("no answer"))
				}
				return nil
			}
			return r.Loop(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			first := &adder{steps: steps}
			r := New(first, o)
			if err := interrupt(r); err != nil || r.Status() != Cancelled || first.step != 8 {
				t.Fatalf("%v, %q after %d steps", err, r.Status(), first.step)
			}
			if err := r.Status().Err(); !errors.Is(err, context.Canceled) {
				t.Errorf("the status's error is %v", err)
			}
			elapsed := r.Elapsed()
			held, _, err := r.read() // written before the end of the session, so it holds a little less
			if err != nil {
				t.Fatal(err)
			}
			other := &adder{steps: steps}
			again := New(other, o)
			if err := again.Loop(context.Background()); err != nil || again.Status() != Completed {
				t.Fatal(err, again.Status())
			}
			first.before = nil
			computetest.NoError(t, os.Remove(o.Checkpoint))
			if err := r.Loop(context.Background()); err != nil || r.Status() != Completed {
				t.Fatal(err, r.Status())
			}
			if want := sumTo(steps); other.sum != want || first.sum != want {
				t.Errorf("sums %v and %v, want %v", other.sum, first.sum, want)
			}
			if first.begun != 1 {
				t.Errorf("begun %d times", first.begun)
			}
			if held.Elapsed <= 0 || again.Elapsed() <= held.Elapsed || r.Elapsed() <= elapsed {
				t.Errorf("elapsed %v and %v, then %v and %v", held.Elapsed, elapsed, again.Elapsed(), r.Elapsed())
			}
		})
	}
}

// Elapsed is the time of all sessions' steps, whether they are one Run's or each another's that resumes from the file,
// and nothing of the time between them.
func TestElapsed(t *testing.T) {
	for _, anew := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			o := options(t)
			a := &adder{steps: 9}
			r := New(a, o)
			for session := 1; session <= 3; session++ {
				if anew {
					a = &adder{steps: 9}
					r = New(a, o)
				}
				ctx, cancel := context.WithCancel(t.Context())
				a.before = func(_ context.Context, step int) error {
					if time.Sleep(time.Second); step == 3*session {
						cancel()
					}
					return nil
				}
				if err := r.Loop(ctx); err != nil || a.step != 3*session {
					t.Fatal(err, a.step)
				}
				time.Sleep(time.Hour)
				held, _, err := r.read()
				if want := time.Duration(a.step) * time.Second; err != nil || r.Elapsed() != want || held.Elapsed != want {
					t.Errorf("anew %v: after %d steps of a second %v, in the file %v (%v)", anew, a.step, r.Elapsed(),
						held.Elapsed, err)
				}
			}
		})
	}
}

// A file of a finished run is not worth a Begin, nor another write, nor any time of the run's.
func TestFinished(t *testing.T) {
	o := options(t)
	computetest.NoError(t, New(&adder{steps: 5}, o).Loop(context.Background()))
	before := computetest.Must(os.Stat(o.Checkpoint))
	var elapsed time.Duration
	for range 2 {
		reports := 0
		o.Progress = func(p Progress) {
			if reports++; p.Step != 5 {
				t.Errorf("reported %+v", p)
			}
		}
		a := &adder{steps: 5}
		r := New(a, o)
		err := r.Loop(context.Background())
		if err != nil || r.Status() != Completed || a.sum != sumTo(5) || a.begun != 0 || reports != 1 {
			t.Errorf("%v, %q, sum %v, begun %d times, %d reports", err, r.Status(), a.sum, a.begun, reports)
		}
		if elapsed != 0 && r.Elapsed() != elapsed {
			t.Errorf("elapsed %v, then %v", elapsed, r.Elapsed())
		}
		elapsed = r.Elapsed()
	}
	if after, err := os.Stat(o.Checkpoint); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was written anew: %v", err)
	}
}

// A run whose context has ended before it goes on is only read: nothing is compiled, and no time counted.
func TestReadCancelled(t *testing.T) {
	o := options(t)
	ctx, cancel := context.WithCancel(t.Context())
	first := New(&adder{steps: 5, before: func(_ context.Context, step int) error {
		if step == 3 {
			cancel()
		}
		return nil
	}}, o)
	computetest.NoError(t, first.Loop(ctx))
	a := &adder{steps: 5}
	r := New(a, o)
	if err := r.Loop(ctx); err != nil || r.Status() != Cancelled || a.step != 3 || a.begun != 0 ||
		r.Elapsed() > first.Elapsed() {
		t.Errorf("%v, %q, step %d, begun %d times, %v of %v", err, r.Status(), a.step, a.begun, r.Elapsed(), first.Elapsed())
	}
	if err := r.Loop(t.Context()); err != nil || a.sum != sumTo(5) || a.begun != 1 {
		t.Errorf("%v, sum %v, begun %d times", err, a.sum, a.begun)
	}
}

// unwritable makes a path one that nothing can be written to.
func unwritable(t *testing.T, path string) {
	computetest.NoError(t, os.Remove(path))
	computetest.NoError(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o700))
}

// A checkpoint that cannot be written ends the run, but what it has stays in memory and counts: in the middle as
// Stopped, at the end as Completed. One that could never be written loses nothing: an error before the first step.
func TestUnwritable(t *testing.T) {
	for name, c := range map[string]struct {
		at    int
		every time.Duration
		want  Status
	}{"in the middle": {3, time.Nanosecond, Stopped}, "at the end": {3, time.Hour, Completed}} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			o.Every = c.every
			a := &adder{steps: 6}
			a.before = func(_ context.Context, step int) error {
				if step == c.at {
					unwritable(t, o.Checkpoint)
				}
				return nil
			}
			r := New(a, o)
			steps := 0
			err := r.Loop(Watched(t.Context(), func(Progress, Machine) { steps++ }))
			if computetest.WantError(t, name, err, "test: checkpoint"); r.Status() != c.want {
				t.Errorf("%q, %v", r.Status(), err)
			}
			want := map[Status]int{Stopped: 3, Completed: 6}[c.want]
			if steps != want || a.step != want || a.sum != sumTo(want) {
				t.Errorf("%d steps were watched and %d made, sum %v", steps, a.step, a.sum)
			}
			if (r.Status().Err() == nil) != (c.want == Completed) {
				t.Errorf("the status's error is %v", r.Status().Err())
			}
			// With room on the disk again the same run goes on, and a new one begins.
			a.before = nil
			computetest.NoError(t, os.RemoveAll(o.Checkpoint))
			if err := r.Loop(context.Background()); err != nil || r.Status() != Completed || a.sum != sumTo(6) {
				t.Errorf("went on to %v, %q, sum %v", err, r.Status(), a.sum)
			}
		})
	}
	o := options(t)
	o.Checkpoint = filepath.Join(o.Checkpoint, "no", "folder")
	a := &adder{steps: 6}
	if r := New(a, o); r.Loop(context.Background()) == nil || r.Status() != "" || a.step != 0 {
		t.Errorf("ran to %q with an unwritable checkpoint", r.Status())
	}
}

// Of a step's errors those of Stop leave a state, with a checkpoint, and the others none.
func TestErrors(t *testing.T) {
	fault := errors.New("the service is gone")
	for name, c := range map[string]struct {
		err  error
		want Status
	}{"stop": {fmt.Errorf("step 4: %w", Stop(fault)), Stopped}, "fault": {fault, ""}} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			o.Every = time.Hour
			a := &adder{steps: 6, before: func(_ context.Context, step int) error {
				if step == 4 {
					return c.err
				}
				return nil
			}}
			r := New(a, o)
			err := r.Loop(context.Background())
			if !errors.Is(err, fault) || r.Status() != c.want || r.Status().Err() == nil {
				t.Errorf("%v, %q", err, r.Status())
			}
			again := &adder{steps: 6}
			if resumed, err := New(again, o).resume(); !resumed || err != nil {
				t.Fatal(resumed, err)
			}
			if want := map[Status]int{Stopped: 3, "": 0}[c.want]; again.step != want {
				t.Errorf("the file holds step %d, want %d", again.step, want)
			}
		})
	}
}

// What is in the place of a checkpoint and is none of this run says so, and is replaced only where that is wanted.
func TestOtherRuns(t *testing.T) {
	o := options(t)
	half := &adder{steps: 6}
	ctx, cancel := context.WithCancel(t.Context())
	computetest.NoError(t, New(half, o).Loop(Watched(ctx, func(now Progress, _ Machine) {
		if now.Step == 3 {
			cancel()
		}
	})))
	good := computetest.Must(tensorfile.Read(o.Checkpoint))
	forge := func(old, new string, kept map[string]*tensors.Tensor) func(string) error {
		return func(path string) error {
			text := good.Metadata[metadataKey]
			forged := strings.Replace(text, old, new, 1)
			if old != "" && forged == text {
				return fmt.Errorf("there is no %s in %s", old, text)
			}
			if kept == nil {
				kept = good.Tensors
			}
			metadata := map[string]string{metadataKey: forged}
			return tensorfile.Write(path, tensorfile.File{Metadata: metadata, Tensors: kept})
		}
	}
	copied := func(path string) error { return tensorfile.Write(path, good) }
	newer := func(o *Options, _ *adder) { o.Format = "test/3" }
	headless := func(path string) error { return tensorfile.Write(path, tensorfile.File{}) }
	nonsense := func(path string) error { return os.WriteFile(path, []byte("nonsense"), 0o600) }
	named := func(name string, values ...float64) map[string]*tensors.Tensor {
		return map[string]*tensors.Tensor{name: tensors.FromValue(values)}
	}
	for _, c := range []struct {
		what  string
		write func(path string) error
		edit  func(*Options, *adder)
		is    error
		says  string
		anew  bool // with Replace
	}{
		{"a format", copied, newer, ErrOtherRun, `is "test/2", not "test/3"`, true},
		{"a seed", copied, func(_ *Options, a *adder) { a.seed = "8" }, ErrOtherRun,
			"by its seed: the file has none, this run 8", true},
		{"a part more", forge(`"data":"abc"`, `"data":"abc","start":"there"`, nil), nil, ErrOtherRun,
			"by its start: the file has there, this run none", true},
		{"other threads", forge(`"elapsed":`, `"threads":2,"elapsed":`, nil),
			func(o *Options, _ *adder) { o.Threads = 1 }, ErrOtherRun,
			"it was computed with 2 threads, and this process has 1: ", true},
		{"no head", headless, nil, ErrOtherRun, "no head", true},
		{"damage", nonsense, nil, tensorfile.ErrDamaged, "damaged", true},
		{"a folder", func(path string) error { return os.Mkdir(path, 0o700) }, nil, nil, "directory", false},
		{"a negative step", forge(`"step":3`, `"step":-3`, nil), nil, nil, "stands at step -3", false},
		{"a step beyond the end", forge(`"step":3`, `"step":7`, nil), nil, nil, "stands at step 7", false},
		{"a text for a step", forge(`"step":3`, `"step":"3"`, nil), nil, nil, "cannot unmarshal", false},
		{"no tensor", forge("", "", named("x", 1)), nil, nil, `no tensor "sum"`, false},
		{"a wrong length", forge("", "", named("sum", 1, 2)), nil, nil, "it must be", false},
	} {
		for _, replace := range []bool{false, true} {
			o, a := options(t), &adder{steps: 6}
			if err := c.write(o.Checkpoint); err != nil {
				t.Fatalf("%s: %v", c.what, err)
			}
			if c.edit != nil {
				c.edit(&o, a)
			}
			o.Replace = replace
			err := New(a, o).Loop(context.Background())
			if replace && c.anew {
				if err != nil || a.sum != sumTo(6) {
					t.Errorf("%s: with Replace %v, sum %v", c.what, err, a.sum)
				}
				continue
			}
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || a.step != 0 {
				t.Errorf("%s: %v, step %d; want %q", c.what, err, a.step, c.says)
			}
		}
	}
}

// The end is always reported, elapsed and remaining time are the session's pace, and a stage's first step, which may
// compile, does not count for it.
func TestProgress(t *testing.T) {
	var reports []Progress
	a := &adder{steps: 400, before: func(_ context.Context, step int) error {
		time.Sleep(time.Millisecond)
		return nil
	}}
	r := New(a, Options{Owner: "test", Progress: func(p Progress) { reports = append(reports, p) }})
	computetest.NoError(t, r.Loop(context.Background()))
	last := reports[len(reports)-1]
	if n := float64(len(reports)); n < 3 || n > 3+10*r.Elapsed().Seconds() || reports[0].Step != 1 ||
		last.Step != 400 || last.Remaining != 0 || last.Status != Completed || reports[0].Status != "" {
		t.Errorf("%d reports in %v, the last is %+v", len(reports), r.Elapsed(), last)
	}
	if math.IsNaN(last.Score("sum")) || !math.IsNaN(last.Score("none")) {
		t.Errorf("scores of %+v", last)
	}
	p, from := pace{}, time.Now()
	for _, c := range []struct {
		stage       string
		step, steps int
		seconds     int
		want        time.Duration
	}{
		{"a", 1, 11, 50, 0}, {"a", 3, 11, 52, 8 * time.Second}, {"a", 11, 11, 60, 0},
		{"b", 2, 10, 70, 0}, {"b", 4, 10, 90, time.Minute},
	} {
		at := Progress{Stage: c.stage, Step: c.step, Steps: c.steps}
		if got := p.remaining(at, from.Add(time.Duration(c.seconds)*time.Second)); got != c.want {
			t.Errorf("at %+v %v remain, want %v", at, got, c.want)
		}
	}
}

// Records come back as they were laid out; another number of them is an error.
func TestTable(t *testing.T) {
	for _, rows := range [][]float64{{0, 1}, {0, 0, 0, 0}, {1, 2, 3, 4}} {
		kept := map[string]*tensors.Tensor{"trace": Table(rows, 2)}
		got, err := Rows(kept, "trace", len(rows)/2, 2)
		if err != nil || len(got) != len(rows)/2 {
			t.Errorf("%v came back as %v, %v", rows, got, err)
		}
		for i, row := range got {
			if row[0] != rows[2*i] || row[1] != rows[2*i+1] {
				t.Errorf("%v came back as %v", rows, got)
			}
		}
		for _, bad := range [][2]int{{len(rows)/2 + 2, 2}, {len(rows) / 2, 3}} {
			if got, err := Rows(kept, "trace", bad[0], bad[1]); err == nil && bad[0] > 0 {
				t.Errorf("%v is read as %d rows of %d: %v", rows, bad[0], bad[1], got)
			}
		}
	}
}

// A run of no steps is begun all the same, so that there is a state to give.
func TestNoSteps(t *testing.T) {
	a := &adder{}
	r := New(a, options(t))
	if err := r.Loop(context.Background()); err != nil || r.Status() != Completed || a.begun != 1 {
		t.Errorf("%v, %q, begun %d times", err, r.Status(), a.begun)
	}
}

package particles_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/tensorfile"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
	"gobnn/ohsmc"

	"github.com/gomlx/gomlx/core/tensors"
)

// The result of a finished checkpoint is that of the run, in every number, and nothing is compiled for it: of a run
// that came to its end and of one whose patience did.
func TestFinishedCheckpoint(t *testing.T) {
	for _, c := range []struct {
		method fit.Method
		want   run.Status
	}{
		{ohsmc.OpenHorizon{Training: particles.Training{Particles: 20, BatchSize: 8, Epochs: 3}}, run.Completed},
		{ohsmc.OpenHorizon{Training: particles.Training{
			Particles: 20, BatchSize: 8, Epochs: 200, ValidateEvery: 1, Patience: 2,
		}}, run.StoppedEarly},
		{ohsmc.SMC{Training: particles.Training{Particles: 20, BatchSize: 36, Epochs: 1}, Moves: 1}, run.Completed},
	} {
		settings := run.Settings{Engine: computetest.Go(t), Checkpoint: filepath.Join(t.TempDir(), "run")}
		want, err := tried(t.Context(), small, c.method, parts(t), settings)
		if err != nil {
			t.Fatal(err)
		}
		before := settings.Engine.Compiled()
		got, err := tried(t.Context(), small, c.method, parts(t), settings)
		if n := settings.Engine.Compiled() - before; err != nil || n != 0 {
			t.Fatalf("error %v, compiled %d times", err, n)
		}
		if got.Status != c.want || !slices.Equal(numbers(t, got.Posterior), numbers(t, want.Posterior)) {
			t.Errorf("%s, with other numbers than the run, which was %s", got.Status, want.Status)
		}
		for _, r := range []*result{got, want} {
			for i := range r.Trace { // NaN is not equal to itself
				r.Trace[i].LogConstant, r.Trace[i].StepSize, r.Trace[i].Acceptance = 0, 0, 0
				if math.IsNaN(r.Trace[i].LogEvidenceStdErr) {
					r.Trace[i].LogEvidenceStdErr = 0
				}
				if math.IsNaN(r.Trace[i].MeanGradient) {
					r.Trace[i].MeanGradient = 0
				}
			}
		}
		_, smc := c.method.(ohsmc.SMC)
		evidence := got.Posterior.Evidence()
		if !reflect.DeepEqual(got.Trace, want.Trace) || !slices.Equal(got.Validated,
			want.Validated) || got.Best != want.Best ||
			got.Plan != want.Plan || got.Elapsed <= 0 || got.Elapsed > want.Elapsed || evidence.Known() != smc ||
			smc && evidence.Value != want.Posterior.Evidence().Value || !reflect.DeepEqual(got.Warnings, want.Warnings) {
			t.Errorf("%T: the checkpoint gives %+v, the run gave %+v", c.method, got, want)
		}
	}
}

// A disk that takes no checkpoint any more, in the middle of a run or at its end, costs none of the particles, and
// neither does an observer's error.
func TestWhatStopsKeepsTheParticles(t *testing.T) {
	training := particles.Training{Particles: 20, BatchSize: 8, Epochs: 4, ValidateEvery: 1}
	method := ohsmc.OpenHorizon{Training: training}
	whole := trained(t, training, run.Settings{Seed: 4})
	p := parts(t)
	for name, c := range map[string]struct {
		every   time.Duration
		observe error
		want    run.Status
		steps   int
		says    string
	}{
		"in the middle": {every: time.Nanosecond, want: run.Stopped, steps: 2, says: "ohsmc: checkpoint"},
		"at the end":    {every: time.Hour, want: run.Completed, steps: 20, says: "ohsmc: checkpoint"},
		"observer": {every: time.Hour, observe: errors.New("seen enough"), want: run.Stopped, steps: 10,
			says: "seen enough"},
	} {
		file := filepath.Join(t.TempDir(), "run")
		settings := run.Settings{
			Seed: 4, Engine: computetest.Go(t), Checkpoint: file, CheckpointEvery: c.every,
		}
		seen := map[int]*bayes.Posterior{}
		settings.ObserveEvery = 1
		settings.Observe = func(step int, now *bayes.Posterior) error {
			seen[step] = now
			if step == 10 {
				return c.observe
			}
			return nil
		}
		if c.observe == nil {
			settings.Progress = func(p run.Progress) {
				if p.Step == 1 {
					if err := errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "in the way"), 0o700)); err != nil {
						t.Error(err)
					}
				}
			}
		}
		result, err := tried(t.Context(), small, method, p, settings)
		if result == nil || err == nil || !strings.Contains(err.Error(), c.says) || c.observe != nil && !errors.Is(err,
			c.observe) {
			t.Fatalf("%s: result %v, error %v", name, result, err)
		}
		if result.Status != c.want || result.Steps != c.steps || len(result.Trace) != c.steps {
			t.Errorf("%s: %s after %d steps, want %s after %d", name, result.Status, result.Steps, c.want, c.steps)
		}
		if !slices.Equal(numbers(t, result.Posterior), numbers(t, seen[result.Best.Step])) {
			t.Errorf("%s: the posterior is not that of the best validation", name)
		}
		if c.observe == nil {
			continue
		}
		settings.Observe = nil // the checkpoint was written, and goes on
		again, err := fit.Fit(t.Context(), small, method, p, settings)
		if err != nil || !slices.Equal(numbers(t, again.Posterior), numbers(t, whole.Posterior)) {
			t.Errorf("gone on with, the run ends elsewhere: %v", err)
		}
	}
}

// A file with a right digest that no run can have written is refused before it does harm.
func TestForgedCheckpoint(t *testing.T) {
	p := parts(t)
	settings := run.Settings{Seed: 4, Engine: computetest.Go(t), Checkpoint: filepath.Join(t.TempDir(), "run")}
	method := ohsmc.Guided{
		Training: particles.Training{Particles: 20, BatchSize: 8, Epochs: 4, ValidateEvery: 3}, Adapt: .5,
	}
	ctx, cancel := context.WithCancel(t.Context())
	settings.ObserveEvery = 7
	settings.Observe = func(int, *bayes.Posterior) error { cancel(); return nil }
	if result, err := tried(ctx, small, method, p, settings); err != nil || result.Steps != 7 {
		t.Fatal(err)
	}
	settings.Observe = nil
	good, err := tensorfile.Read(settings.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	narrow := func(values ...float32) *tensors.Tensor { return tensors.FromValue(values) }
	for _, c := range []struct {
		what, by string // in the head
		tensor   string // that is replaced
		with     *tensors.Tensor
		says     string
	}{
		{`"step":7`, `"step":-1`, "", nil, "stands at step -1 of 20"},
		{`"step":7`, `"step":21`, "", nil, "stands at step 21 of 20"},
		{`"step":7`, `"step":6`, "", nil, "trace"},
		{`"step":7`, `"stop":7`, "", nil, "unknown field"},
		{`"step":7`, `"step":"x"`, "", nil, "cannot be read"},
		{`"elapsed":\d+`, `"elapsed":-4`, "", nil, "has run for -4ns"},
		{"", "", "phi", narrow(1, 2), `"phi"`},
		{"", "", "psi", narrow(1, 2), `"psi"`},
		{"", "", "log_weights", narrow(1, 2), `"log_weights"`},
		{"", "", "best_phi", narrow(1, 2), `"best_phi"`},
		{"", "", "mean", narrow(1, 2), `"mean"`},
		{"", "", "log_density", narrow(1, 2), `"log_density"`},
		{"", "", "log_step", narrow(1, 2), `"log_step"`},
		{"", "", "best_nlpd", nil, `no tensor "best_nlpd"`},
		{"", "", "trace", tensors.FromValue([][]float64{{1, 2}}), `"trace"`},
		{"", "", "validated", tensors.FromValue([][]float64{{3, 1}, {3, 1}}), "validation after step 3"},
		{"", "", "validated", tensors.FromValue([][]float64{{3, 1}, {5, 1}}), "validation after step 5"},
		{"", "", "validated", tensors.FromValue([][]float64{{-3, 1}, {6, 1}}), "validation after step -3"},
		{"", "", "validated", tensors.FromValue([][]float64{{3, 1}}), `"validated"`},
	} {
		text := good.Metadata["gobnn"]
		if c.what != "" {
			forged := regexp.MustCompile(c.what).ReplaceAllString(text, c.by)
			if forged == text {
				t.Fatalf("%s is not in %s", c.what, text)
			}
			text = forged
		}
		held := maps.Clone(good.Tensors)
		if c.tensor != "" {
			held[c.tensor] = c.with
			if c.with == nil {
				delete(held, c.tensor)
			}
		}
		file := tensorfile.File{Metadata: map[string]string{"gobnn": text}, Tensors: held}
		if err := tensorfile.Write(settings.Checkpoint, file); err != nil {
			t.Fatal(err)
		}
		// It is no other run's: it is forged, and nothing to write over in silence.
		for _, replace := range []bool{false, true} {
			settings.Replace = replace
			result, err := fit.Fit(t.Context(), small, method, p, settings)
			if result != nil || err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(),
				"delete the file") {
				t.Errorf("%s %s: %v, want %q", c.by, c.tensor, err, c.says)
			}
		}
	}
}

// anew is a random walk that holds a function, so that nothing compiled for it is kept.
type anew struct {
	mcmc.RandomWalk
	Hold func() `json:"-"`
}

// What is an input of the programs, the seed, the learning rate and the number of epochs, does not have them compiled
// anew; the results are those of programs that are.
func TestCompilesOnce(t *testing.T) {
	walk := mcmc.RandomWalk{Variance: .01}
	kept := 0
	for _, change := range []func(*particles.Training, *run.Settings){
		func(*particles.Training, *run.Settings) {}, func(_ *particles.Training, s *run.Settings) { s.Seed = 3 },
		func(a *particles.Training, _ *run.Settings) { a.Epochs = 3 },
		func(a *particles.Training, _ *run.Settings) { a.Patience = 2 },
		func(a *particles.Training, _ *run.Settings) { a.Optimiser.Schedule = train.Exponential(.1, .9, 2) },
		func(a *particles.Training, _ *run.Settings) { a.ValidateEvery = 2 },
	} {
		training := particles.Training{Particles: 11, BatchSize: 36, Epochs: 1}
		s := run.Settings{Engine: computetest.Go(t)}
		change(&training, &s)
		before := s.Engine.Compiled()
		got, err := fit.Fit(t.Context(), small, ohsmc.OpenHorizon{Training: training, Kernel: walk}, parts(t), s)
		if err != nil {
			t.Fatal(err)
		}
		kept += s.Engine.Compiled() - before
		before = s.Engine.Compiled()
		method := ohsmc.OpenHorizon{Training: training, Kernel: anew{walk, func() {}}}
		want, err := fit.Fit(t.Context(), small, method, parts(t), s)
		if err != nil {
			t.Fatal(err)
		}
		if s.Engine.Compiled() != before+1 {
			t.Error("what holds a function is compiled anew")
		}
		if !slices.Equal(numbers(t, got.Posterior), numbers(t, want.Posterior)) {
			t.Errorf("%+v, seed %d: the kept programs' result differs", training, s.Seed)
		}
	}
	if kept != 1 {
		t.Errorf("it compiled %d times", kept)
	}
}

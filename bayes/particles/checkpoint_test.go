package particles_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/tensorfile"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
	"gobnn/ohsmc"
)

// A run that is cancelled, and goes on from its checkpoint in another Fit, ends with the bits of one that was not, in
// every number and record, and so does one that is read when it is finished: a run that came to its end and one whose
// patience did.
func TestResume(t *testing.T) {
	patient := particles.Training{Particles: 20, BatchSize: 8, Epochs: 40, Threshold: .7, ValidateEvery: 1}
	impatient := patient
	impatient.Epochs, impatient.Patience = 200, 2
	for _, c := range []struct {
		method fit.Method
		want   run.Status
	}{
		{ohsmc.OpenHorizon{Training: patient}, run.Completed}, {ohsmc.OpenHorizon{Training: impatient}, run.StoppedEarly},
		{ohsmc.SMC{Training: particles.Training{Particles: 20, BatchSize: 12, Epochs: 2}, Moves: 1}, run.Completed},
	} {
		computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
			settings := run.Settings{Seed: 4, Engine: engine, DType: dtype}
			all := func(ctx context.Context) (*particles.Details, string) {
				r, err := fit.Fit(ctx, fittest.Small, c.method, fittest.Parts(t, 60), settings)
				if err != nil {
					t.Fatal(err)
				}
				d := fit.Details[*particles.Details](r)
				return d, fmt.Sprint(r.Status, *d, r.Warnings, r.Posterior.Evidence(), fittest.Numbers(t, r.Posterior))
			}
			whole, want := all(t.Context())
			if !strings.HasPrefix(want, string(c.want)) || c.want == run.StoppedEarly && whole.Steps != whole.Best.Step+2 {
				t.Errorf("after %d steps, the best %d: %.20s", whole.Steps, whole.Best.Step, want)
			}
			settings.Checkpoint = filepath.Join(t.TempDir(), "run")
			ctx, cancel := context.WithCancel(t.Context())
			settings.Progress = func(run.Progress) { cancel() }
			first, _ := all(ctx)
			if first.Steps < 1 || first.Steps >= whole.Steps || len(first.Trace) != first.Steps {
				t.Fatalf("cancelled after %d steps, with %d records", first.Steps, len(first.Trace))
			}
			settings.Progress = nil
			if _, got := all(t.Context()); got != want {
				t.Errorf("resumed: %s, want %s", got, want)
			}
			before := engine.Compiled()
			if _, got := all(t.Context()); got != want || engine.Compiled() != before {
				t.Errorf("finished: %d programs compiled, %s, want %s", engine.Compiled()-before, got, want)
			}
			settings.Checkpoint, settings.Seed = "", 5
			if _, got := all(t.Context()); got == want {
				t.Error("another seed gives the same bits")
			}
		})
	}
}

// A disk that takes no checkpoint any more, in the middle of a run or at its end, costs none of the particles: the
// posterior is that of the best validation.
func TestFullDiskKeepsTheParticles(t *testing.T) {
	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 20, BatchSize: 8, Epochs: 4, ValidateEvery: 1}}
	for every, want := range map[time.Duration]run.Status{time.Nanosecond: run.Stopped, time.Hour: run.Completed} {
		file, seen := filepath.Join(t.TempDir(), "run"), map[int]*bayes.Posterior{}
		settings := run.Settings{
			Seed: 4, Engine: computetest.Go(t), Checkpoint: file, CheckpointEvery: every,
			ObserveEvery: 1, Observe: func(step int, now *bayes.Posterior) error { seen[step] = now; return nil },
			Progress: func(p run.Progress) {
				if p.Step == 1 {
					if err := errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "in the way"), 0o700)); err != nil {
						t.Error(err)
					}
				}
			},
		}
		result, err := fit.Fit(t.Context(), fittest.Small, method, fittest.Parts(t, 60), settings)
		computetest.WantError(t, string(want), err, "ohsmc: checkpoint")
		if result == nil || result.Status != want {
			t.Fatalf("%+v, want %s", result, want)
		}
		d := fit.Details[*particles.Details](result)
		if len(d.Trace) != d.Steps || (d.Steps == 20) != (want == run.Completed) ||
			!slices.Equal(fittest.Numbers(t, result.Posterior), fittest.Numbers(t, seen[d.Best.Step])) {
			t.Errorf("%s after %d steps with %d records, or the posterior is not that of step %d, the best", want, d.Steps,
				len(d.Trace), d.Best.Step)
		}
	}
}

// A checkpoint of another model or of other settings is refused with what differs, and stays as it is unless it is to
// be replaced.
func TestResumeMismatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run")
	settings := run.Settings{Checkpoint: file, Engine: computetest.Go(t)}
	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 10, BatchSize: 36, Epochs: 1}}
	fittest.Fit[*particles.Details](t, fittest.Small, method, fittest.Parts(t, 60), settings)
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	model, more, kernel := fittest.Small, method, method
	model.Stochastic, more.Particles, kernel.Kernel = bayes.Layers(1), 12, mcmc.RandomWalk{Variance: .5}
	for _, c := range []struct {
		what   string
		model  bayes.Model
		method fit.Method
	}{{"model", model, method}, {"settings", fittest.Small, more}, {"settings", fittest.Small, kernel}} {
		_, err := fit.Fit(t.Context(), c.model, c.method, fittest.Parts(t, 60), settings)
		computetest.WantError(t, c.what, err, "by its "+c.what, file)
		if after, _ := os.ReadFile(file); !slices.Equal(after, written) {
			t.Fatalf("another %s: the checkpoint was changed", c.what)
		}
	}
	if err := os.WriteFile(file, written[:len(written)-5], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := fit.Fit(t.Context(), fittest.Small, method, fittest.Parts(t, 60), settings); !errors.Is(err,
		tensorfile.ErrDamaged) {
		t.Errorf("a truncated checkpoint: error %v", err)
	}
	settings.Replace = true
	fittest.Fit[*particles.Details](t, fittest.Small, method, fittest.Parts(t, 60), settings)
	fittest.Fit[*particles.Details](t, fittest.Small, more, fittest.Parts(t, 60), settings) // over another run
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
		fitted := func(kernel mcmc.Kernel) (numbers []float64, compiled int) {
			before := s.Engine.Compiled()
			method := ohsmc.OpenHorizon{Training: training, Kernel: kernel}
			r, _ := fittest.Fit[*particles.Details](t, fittest.Small, method, fittest.Parts(t, 60), s)
			return fittest.Numbers(t, r.Posterior), s.Engine.Compiled() - before
		}
		got, compiled := fitted(walk)
		kept += compiled
		want, compiled := fitted(anew{walk, func() {}})
		if compiled != 1 {
			t.Error("what holds a function is compiled anew")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v, seed %d: the kept programs' result differs", training, s.Seed)
		}
	}
	if kept != 2 { // steps with a validation each, and without
		t.Errorf("it compiled %d times", kept)
	}
}

// An observer sees the particles after each so many steps, once an epoch by default, and changes nothing; fit.Now has
// them after each step.
func TestObserve(t *testing.T) {
	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 10, BatchSize: 5, Epochs: 2}}
	data, settings := dataset.Parts{Train: fittest.Data(20)}, run.Settings{Engine: computetest.Go(t)}
	var all [][]float64
	watched := run.Watched(t.Context(), func(_ run.Progress, m run.Machine) {
		all = append(all, fittest.Numbers(t, computetest.Must(fit.Now(m)).Posterior))
	})
	whole := computetest.Must(fit.Fit(watched, fittest.Small, method, data, settings))
	all = append(all, fittest.Numbers(t, whole.Posterior))
	if len(all) != 9 || !slices.Equal(all[7], all[8]) || slices.Equal(all[6], all[7]) { // the result, too
		t.Errorf("%d positions, or the last two differ", len(all))
	}
	for every, want := range map[int][]int{0: {4, 8}, 3: {3, 6}, 8: {8}} {
		var steps []int
		settings.ObserveEvery = every
		settings.Observe = func(step int, now *bayes.Posterior) error {
			if steps = append(steps, step); !slices.Equal(fittest.Numbers(t, now), all[step-1]) {
				t.Errorf("observed every %d: other numbers at step %d", every, step)
			}
			return nil
		}
		result, _ := fittest.Fit[*particles.Details](t, fittest.Small, method, data, settings)
		if !slices.Equal(steps, want) || !slices.Equal(fittest.Numbers(t, result.Posterior), all[8]) {
			t.Errorf("every %d: observed at %v, want %v, or with another result", every, steps, want)
		}
	}
}

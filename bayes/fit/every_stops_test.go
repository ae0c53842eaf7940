package fit_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
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

// watched is a run of the method that calls a function after each step, and is left where that returns false.
func (m method) watched(
	t *testing.T, model bayes.Model, parts dataset.Parts, settings run.Settings, step func(run.Progress) (more bool),
) (*fit.Result, error) {
	method := m.Method
	if m.after != nil {
		trained, err := fit.Fit(t.Context(), model, m.after, parts, run.Settings{
			Seed: settings.Seed, Engine: settings.Engine,
		})
		if err != nil {
			t.Fatal(err)
		}
		model, method = bayes.Model{}, fit.From{Trained: trained.Posterior, Method: m.Method}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	return fit.Fit(run.Watched(ctx, func(p run.Progress, _ run.Machine) {
		if !step(p) {
			cancel()
		}
	}), model, method, parts, settings)
}

// A run of any method that is left in the middle of a stage and gone on with ends as the whole run does, to the bit: by
// its posterior, its evidence, its curves and its doubts. Once finished it is read without a program being compiled,
// and a run of another seed or other data leaves its file as it is. The error of an observer ends a run, which gives
// what it has found, and a cancelled one says so.
func TestEveryMethodStops(t *testing.T) {
	parts, err := plane(60).Split(dataset.Fractions{Train: .6, Validation: .4}, 1)
	if err != nil {
		t.Fatal(err)
	}
	other, err := plane(60).Split(dataset.Fractions{Train: .6, Validation: .4}, 2)
	if err != nil {
		t.Fatal(err)
	}
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All()}
	for _, m := range every() {
		t.Run(m.name, func(t *testing.T) {
			s := run.Settings{Seed: 3, Engine: computetest.Go(t)}
			var all []run.Progress
			whole, err := m.watched(t, model, parts, s, func(p run.Progress) bool {
				all = append(all, p)
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			same := func(what string, got *fit.Result) {
				t.Helper()
				if got.Status != whole.Status || !slices.Equal(flat(t, got), flat(t, whole)) {
					t.Errorf("%s: %s, with other numbers than the whole run, which was %s", what, got.Status, whole.Status)
				}
				if !slices.Equal(got.Warnings, whole.Warnings) {
					t.Errorf("%s: warnings %q, of the whole run %q", what, got.Warnings, whole.Warnings)
				}
			}
			for _, at := range middles(all) {
				s.Checkpoint = filepath.Join(t.TempDir(), "checkpoint")
				steps := 0
				_, err := m.watched(t, model, parts, s, func(run.Progress) bool {
					steps++
					return steps < at
				})
				if steps != at || err != nil && !errors.Is(err, context.Canceled) {
					t.Fatalf("the run ends after step %d, and not %d, of %d: %v", steps, at, len(all), err)
				}
				steps = 0
				left := fmt.Sprintf("left after step %d of %q", all[at-1].Step, all[at-1].Stage)
				result, err := m.watched(t, model, parts, s, func(run.Progress) bool {
					steps++
					return true
				})
				if err != nil {
					t.Fatalf("%s: %v", left, err)
				}
				same(left, result)
				if steps > len(all)-at+len(all)/10+1 {
					t.Errorf("left after %d of %d steps, it makes %d more", at, len(all), steps)
				}
			}
			compiled := s.Engine.Compiled()
			again, err := m.fit(t.Context(), model, parts, s)
			if err != nil {
				t.Fatal(err)
			}
			same("read when finished", again)
			if n := s.Engine.Compiled() - compiled; n != 0 && m.after == nil {
				t.Errorf("to read a finished run %d programs were compiled", n)
			}
			kept := os.DirFS(filepath.Dir(s.Checkpoint))
			files, err := fs.Glob(kept, "*") // of stages, too
			if err != nil || len(files) == 0 {
				t.Fatalf("files %q, %v", files, err)
			}
			var before [][]byte
			for _, file := range files {
				bytes, err := fs.ReadFile(kept, file)
				if err != nil {
					t.Fatal(err)
				}
				before = append(before, bytes)
			}
			seed := s
			seed.Seed = 4
			_, ofSeed := m.fit(t.Context(), model, parts, seed)
			_, ofData := m.fit(t.Context(), model, other, s)
			if !errors.Is(ofSeed, run.ErrOtherRun) || !errors.Is(ofData, run.ErrOtherRun) {
				t.Errorf("of another seed: %v; of other data: %v", ofSeed, ofData)
			}
			for i, file := range files {
				if after, err := fs.ReadFile(kept, file); err != nil || !slices.Equal(after, before[i]) {
					t.Errorf("another run has changed %s (%v)", file, err)
				}
			}

			if m.silent {
				return
			}
			s.Checkpoint = ""
			fault := errors.New("seen enough")
			s.Observe = func(int, *bayes.Posterior) error { return fault }
			got, err := m.fit(t.Context(), model, parts, s)
			if !errors.Is(err, fault) || (got == nil) != m.staged || got != nil &&
				(got.Status != run.Stopped || got.Posterior == nil) {
				t.Errorf("an observer's error: %v, result %+v", err, got)
			}
			ctx, cancel := context.WithCancel(t.Context())
			s.Observe = func(int, *bayes.Posterior) error { cancel(); return nil }
			if got, err := m.fit(ctx, model, parts, s); err == nil && got.Status == run.Stopped ||
				err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v, result %+v", err, got)
			}
		})
	}
}

// middles are the numbers of the steps in the middle of stages, of four at most.
func middles(all []run.Progress) (chosen []int) {
	var stages [][]int
	for i, p := range all {
		if i == 0 || p.Stage != all[i-1].Stage {
			stages = append(stages, nil)
		}
		stages[len(stages)-1] = append(stages[len(stages)-1], i+1)
	}
	for i := 0; i < len(stages); i += (len(stages) + 3) / 4 {
		chosen = append(chosen, stages[i][len(stages[i])/2])
	}
	return chosen
}

// flat is all that a result says in numbers, but for times.
func flat(t *testing.T, r *fit.Result) (all []float64) {
	t.Helper()
	numbers, err := r.Posterior.Draws()
	if err != nil {
		t.Fatal(err)
	}
	phi, err := compute.Float64s(numbers.Phi)
	if err != nil {
		t.Fatal(err)
	}
	all = append(append(all, phi...), numbers.LogWeights...)
	if numbers.Psi != nil {
		psi, err := compute.Float64s(numbers.Psi)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, psi...)
	}
	all = append(all, r.Posterior.Evidence().Value, r.Posterior.Evidence().StdErr)
	for _, c := range r.Curves {
		all = append(all, c.Values...)
	}
	for i, v := range all {
		if math.IsNaN(v) {
			all[i] = -12345 // NaN is not equal to itself
		}
	}
	return all
}

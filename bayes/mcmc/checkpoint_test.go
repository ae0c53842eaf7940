package mcmc

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/tensorfile"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// The result of a finished checkpoint is that of the run, in every number but none of the computation: no graph is
// built.
func TestFinishedCheckpoint(t *testing.T) {
	settings := Settings{
		Chains: 3, Draws: 20, WarmUp: 40, Engine: computetest.Go(t), Checkpoint: filepath.Join(t.TempDir(), "run"),
	}
	problem, kernel := standard(), HMC{Steps: 3, Jitter: .7}
	want, err := Sample(context.Background(), problem, kernel, settings)
	if err != nil {
		t.Fatal(err)
	}
	problem.Target = func(compute.Nodes, []*Node) density.Target {
		t.Error("a graph is built")
		return nil
	}
	compiled := settings.Engine.Compiled()
	got, err := Sample(context.Background(), problem, kernel, settings)
	if n := settings.Engine.Compiled() - compiled; err != nil || n != 0 {
		t.Fatalf("error %v, compiled %d times", err, n)
	}
	if got.Status != run.Completed || !slices.Equal(got.Draws.At(2, 19), want.Draws.At(2, 19)) ||
		!reflect.DeepEqual(got.Stats, want.Stats) ||
		!reflect.DeepEqual(got.Draws.Divergent(), want.Draws.Divergent()) || got.Moves != want.Moves ||
		got.WarmUpMoves != want.WarmUpMoves || got.Gradients != want.Gradients ||
		got.Tuned.StepSize != want.Tuned.StepSize || got.Elapsed > want.Elapsed || got.Elapsed <= 0 {
		t.Errorf("the checkpoint gives %+v, the run gave %+v", got, want)
	}
}

// A disk that takes no checkpoint any more, in the middle of a run or at its end, costs none of the draws.
func TestUnwritableCheckpoint(t *testing.T) {
	for _, c := range []struct {
		every time.Duration
		want  run.Status
		draws int
	}{{time.Nanosecond, run.Stopped, 2}, {time.Hour, run.Completed, 20}} {
		file := filepath.Join(t.TempDir(), "run")
		settings := Settings{
			Chains: 3, Draws: 20, WarmUp: NoWarmUp, Engine: computetest.Go(t), Checkpoint: file, CheckpointEvery: c.every,
			Progress: func(p run.Progress) {
				if p.Step > 3 {
					return
				}
				if err := errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "in the way"), 0o700)); err != nil {
					t.Error(err)
				}
			},
		}
		result, err := Sample(context.Background(), standard(), MALA{StepSize: .5}, settings)
		if !says(err, "mcmc: checkpoint") || result == nil {
			t.Fatalf("result %+v, error %v", result, err)
		}
		if result.Status != c.want || result.Draws.PerChain != c.draws {
			t.Errorf("%s with %d draws, want %s with %d", result.Status, result.Draws.PerChain, c.want, c.draws)
		}
	}
}

// A file with a right digest that no run can have written is refused before it does harm.
func TestForgedCheckpoint(t *testing.T) {
	settings := Settings{
		Chains: 3, Draws: 20, WarmUp: 40, Engine: computetest.Go(t),
		Checkpoint: filepath.Join(t.TempDir(), "run"),
	}
	kernel := HMC{Steps: 3}
	stop := func(after int) tensorfile.File {
		chains, of := settings.apart(kernel)
		moves := 0
		for range fit.SampleSteps(t.Context(), standard(), chains, of) {
			if moves++; moves == after {
				break
			}
		}
		file, err := tensorfile.Read(settings.Checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	warming := stop(60)
	drawing := stop(110)
	for _, c := range []struct {
		file     tensorfile.File
		what, by string // in the head
		tensor   string // that is replaced by one of another shape
		says     string
	}{
		{drawing, `"move":\d+`, `"move":-1`, "", "move -1"},
		{drawing, `"warm_up_moves":\d+`, `"warm_up_moves":200`, "", "200 moves of the warm-up"},
		{drawing, `"warm_up_time":\d+`, `"warm_up_time":-5`, "", "moves of the warm-up in -5ns"},
		{drawing, `"tallies":\[\{.*?\},`, `"tallies":[`, "", "tallies of 2 chains"},
		{drawing, `"kept":\d+`, `"kept":-3`, "", "chain 0 has"},
		{drawing, `"kept":\d+`, `"kept":2000`, "", "chain 0 has"},
		{drawing, `"transitions":\d+`, `"transitions":100000`, "", "chain 0 has 100000 transitions"},
		{drawing, `"closed":false`, `"closed":true`, "", "chain 0 has"},
		{drawing, `"step_size":[^,]+`, `"step_size":-0.5`, "", "step size of -0.5"},
		{drawing, `"scale":\[`, `"scale":[1,`, "", "scales of 3 coordinates"},
		{drawing, `"scale":\[[^,]+`, `"scale":[0`, "", "scales of [0"},
		{drawing, `"tells":\[`, `"tells":["Chance",`, "", `a field "Chance"`},
		{drawing, `"tells":\["\w+",`, `"tells":[`, "", "reports the fields"},
		{drawing, "", "", "draws", "draws"},
		{drawing, "", "", "drawsDivergent", "drawsDivergent"},
		{drawing, "", "", "phi", "phi"},
		{drawing, "", "", "gradient", "gradient"},
		{warming, `"done":\d+`, `"done":-1`, "", "made -1 of 40"},
		{warming, `"done":\d+`, `"done":40`, "", "made 40 of 40"},
		{warming, `"waiting":\[`, `"waiting":[true,`, "", "of 4 chains"},
		{warming, `"mean":\[`, `"mean":[1,`, "", "coordinates"},
		{warming, `"tunes":true`, `"tunes":false`, "", "tunes"},
	} {
		text := c.file.Metadata["gobnn"]
		forged := text
		if c.what != "" {
			place := regexp.MustCompile(c.what).FindStringIndex(text)
			if place == nil {
				t.Fatalf("%s is not in %s", c.what, text)
			}
			forged = text[:place[0]] + c.by + text[place[1]:]
		}
		held := maps.Clone(c.file.Tensors)
		if c.tensor != "" {
			held[c.tensor] = tensors.FromValue([]float32{1, 2, 3})
		}
		file := tensorfile.File{Metadata: map[string]string{"gobnn": forged}, Tensors: held}
		if err := tensorfile.Write(settings.Checkpoint, file); err != nil {
			t.Fatal(err)
		}
		// it is no other run's: it is forged, and nothing to write over in silence
		for _, replace := range []bool{false, true} {
			settings.Replace = replace
			result, err := Sample(context.Background(), standard(), kernel, settings)
			if result != nil || !says(err, c.says) || !says(err, "delete the file") {
				t.Errorf("%s %s: %v, want %q", c.by, c.tensor, err, c.says)
			}
		}
		settings.Replace = false
	}
}

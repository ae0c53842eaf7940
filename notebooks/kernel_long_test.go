//go:build long

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gobnn/notebooks/execute"
	"gobnn/notebooks/setup"
)

// cell trains a small network, and ends with a hash of all of the result's bits: particles, weights, shared parameters
// and the records of all steps, but for their times. FILE is the checkpoint, written every 50 ms.
const cell = `import (
	"crypto/sha256"
	"fmt"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/ohsmc"
)

%%
parts, err := dataset.MustLoad("yacht").Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
if err != nil {
	panic(err)
}
model := bayes.Model{
	Network:    nn.MLP{Hidden: []int{20, 10}, Activation: nn.GELU},
	Likelihood: bayes.Gaussian{Learn: true},
	Stochastic: bayes.Layers(2),
}
method := ohsmc.OpenHorizon{Training: particles.Training{
	Particles: 300, BatchSize: 20, Epochs: 300, ValidateEvery: 1, Patience: 1e9,
}}
result, err := fit.Fit(run.Context(), model, method, parts, run.Settings{
	Seed: 1, Checkpoint: FILE,
	CheckpointEvery: 50 * time.Millisecond,
	Progress: func(p run.Progress) { fmt.Printf("at %d\n", p.Step) },
})
if err != nil {
	panic(err)
}
if err := result.Status.Err(); err != nil {
	panic(err)
}
sum := sha256.New()
for _, name := range []string{"layer1/weights", "layer2/weights", "layer3/weights"} {
	values, stochastic, err := result.Posterior.Parameter(name)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(sum, values, stochastic) // the shortest decimals that read back to the same bits
}
training := fit.Details[*particles.Details](result)
fmt.Fprintln(sum, result.Posterior.LogWeights().Weights(), training.Trace, training.Validated)
fmt.Printf("%s after %d steps: %x\n", result.Status, training.Steps, sum.Sum(nil))
`

// A run in a notebook is stopped ten times by the stop button, and its kernel is killed ten times, at random steps. Run
// again, the cell goes on from its checkpoint, which after the stop button has every step, to the same bits as if
// nothing had been.
func TestStopAndKillInNotebookLong(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "run.safetensors")
	out := string(kernel(t, false, folder, strings.ReplaceAll(cell, "FILE", strconv.Quote(file)), "stop", file))
	t.Log("\n" + out)
	for _, what := range []string{"\nstopped ", "\nkilled "} {
		if got := strings.Count(out, what); got != 10 {
			t.Errorf("%d times%s, want 10", got, what)
		}
	}
	if empty := strings.Count(out, ": kept 0,"); empty > 5 {
		t.Errorf("%d checkpoints of 20 have no step", empty)
	}
}

// `go run ./notebooks run` that is stopped interrupts the cell, which writes its checkpoint before it ends.
func TestRunStopsLong(t *testing.T) {
	root, env := ready(t, false)
	folder := t.TempDir()
	file := filepath.Join(folder, "run.safetensors")
	source := strings.NewReplacer("FILE", strconv.Quote(file), "Epochs: 300", "Epochs: 1_000_000",
		"50 * time.Millisecond", "time.Hour").Replace(cell)
	notebook, err := json.Marshal(map[string]any{
		"cells": []any{map[string]any{"cell_type": "code", "id": "one", "metadata": map[string]any{}, "outputs": []any{},
			"execution_count": nil, "source": source}},
		"metadata": map[string]any{}, "nbformat": 4, "nbformat_minor": 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "endless.ipynb"), notebook, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	go func() { // once the run has begun, some steps later
		for ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
			if _, err := os.Stat(file); err == nil {
				time.Sleep(3 * time.Second)
				cancel()
			}
		}
	}()
	environ, err := (&setup.Setup{Root: root}).JupyterEnviron(env)
	if err != nil {
		t.Fatal(err)
	}
	runner := execute.Runner{
		Python: filepath.Join(env, "bin", "python"), Env: environ,
		Folder: folder, Into: folder, Failed: folder,
	}
	err = runner.Run(ctx, "endless")
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "goes on from there") {
		t.Fatalf("error %v, want one that says that it was stopped", err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var header struct {
		Metadata struct{ Gobnn string } `json:"__metadata__"`
	}
	if err := json.Unmarshal(data[8:8+binary.LittleEndian.Uint64(data)], &header); err != nil {
		t.Fatal(err)
	}
	var kept struct{ Head struct{ Step int } }
	if err := json.Unmarshal([]byte(header.Metadata.Gobnn), &kept); err != nil {
		t.Fatal(err)
	}
	if t.Logf("the checkpoint has %d steps", kept.Head.Step); kept.Head.Step == 0 {
		t.Error("the checkpoint is that of the beginning")
	}
}

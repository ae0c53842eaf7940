//go:build long

package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// cell trains a small network, and ends with a hash of all of the result's bits: particles, weights, shared parameters
// and the records of all steps, but for their times. FILE is the checkpoint, written every 50 ms.
const cell = `import (
	"crypto/sha256"
	"fmt"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/ohsmc"
)

%%
parts, err := dataset.Yacht().Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
if err != nil {
	panic(err)
}
model := bayes.Model{
	Network:    nn.MLP{Hidden: []int{20, 10}, Activation: nn.GELU},
	Likelihood: bayes.Gaussian{Learn: true},
	Stochastic: bayes.Layers(2),
}
result, err := ohsmc.Fit(run.Context(), model, ohsmc.OpenHorizon{}, parts, ohsmc.Settings{
	Particles: 300, BatchSize: 20, Epochs: 150, Seed: 1, Checkpoint: FILE,
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
for i := range result.Trace {
	result.Trace[i].Seconds = 0 // that each step took
}
fmt.Fprintln(sum, result.Posterior.LogWeights().Weights(), result.Trace, result.Validated)
fmt.Printf("%s after %d steps: %x\n", result.Status, result.Steps, sum.Sum(nil))
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

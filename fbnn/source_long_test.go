//go:build long

package fbnn

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// alone says whether this is a process of the test's own; where it is not it runs one.
func alone(t *testing.T) bool {
	t.Helper()
	const variable = "GOBNN_TEST_ALONE"
	if os.Getenv(variable) != "" {
		return true
	}
	own := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	own.Env = append(os.Environ(), variable+"=1")
	said, err := own.CombinedOutput()
	if t.Logf("%s", said); err != nil {
		t.Error(err)
	}
	return false
}

// Rows of 1000 features are calibrated on, emulated and sampled with the true posterior's correction, in less than
// 2 GiB of memory. They are 60 000, .5 GB, or GOBNN_ROWS: what is in memory does not depend on
// it. 5 000 000 rows, 40 GB, took .79 GiB, and 70 minutes beside other work. All of it is in a process of its own,
// since the memory of other tests would count.
func TestSourceMemoryLong(t *testing.T) {
	engine := computetest.XLA(t, "minutes with XLA, hours on the Go backend")
	if !alone(t) {
		return
	}
	rows := 60_000
	if text := os.Getenv("GOBNN_ROWS"); text != "" {
		var err error
		if rows, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	model := bayes.Model{
		Network: nn.MLP{Hidden: []int{4}}, Likelihood: bayes.Gaussian{StdDev: .3}, Prior: bayes.Normal{StdDev: .3},
		Stochastic: bayes.All(),
	}
	began := time.Now()
	a := CES{
		Pairs: 50, PairsThin: 5, PairsWarmUp: 200, BatchSize: 500, Draws: 8, Regressor: linear{},
		// A step that is accepted: what the emulated log-density gets wrong along it grows with the rows.
		Sampling: mcmc.HMC{StepSize: 1e-8 * 60_000 / float64(rows), Steps: 2},
	}
	r := fitted(t, model, a,
		dataset.Parts{Source: dataset.Simulated{N: rows, Features: 1000, Noise: .3, Seed: 1}},
		run.Settings{Engine: engine})
	memory := computetest.PeakMemory(t)
	t.Logf("%d rows in %v: %.2f GiB of memory; second stage %.2f, %+v", rows, time.Since(began), memory, r.SecondStage,
		r.Truth)
	if memory > 2 {
		t.Errorf("%.2f GiB of memory, want at most 2", memory)
	}
}

//go:build long

package fbnn_test

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
	"gobnn/fbnn"
)

// Rows of 1000 features are calibrated on, emulated and sampled with the true posterior's correction, in less than
// 2 GiB of memory, and than was estimated. They are 60 000, .5 GB, or GOBNN_ROWS: what is in memory does not depend on
// it. All of it is in a process of its own, since the memory of other tests would count.
func TestSourceMemoryLong(t *testing.T) {
	engine := computetest.Engines(t)[0]
	if !engine.IsXLA() {
		t.Skip("minutes with XLA, hours on the Go backend")
	}
	const alone = "GOBNN_TEST_ALONE"
	if os.Getenv(alone) == "" {
		own := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSourceMemoryLong$", "-test.v")
		own.Env = append(os.Environ(), alone+"=1")
		said, err := own.CombinedOutput()
		if t.Logf("%s", said); err != nil {
			t.Error(err)
		}
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
	a := fbnn.CES{
		Pairs: 50, PairsThin: 5, PairsWarmUp: 200, BatchSize: 500, Draws: 8, Regressor: fbnn.Linear{},
		Sampling: mcmc.HMC{StepSize: 1e-8, Steps: 2},
	}
	r, err := fbnn.FitSource(t.Context(), model, a, dataset.Simulated{N: rows, Features: 1000, Noise: .3, Seed: 1},
		fbnn.Settings{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	memory, estimate := computetest.PeakMemory(t), float64(r.Memory)/(1<<30)
	t.Logf("%d rows in %v: %.2f GiB of memory, estimated %.2f; second stage %.2f, %+v", rows, time.Since(began), memory,
		estimate, r.SecondStage, r.Truth)
	if memory > 2 || memory > estimate {
		t.Errorf("%.2f GiB of memory, estimated %.2f, want at most 2", memory, estimate)
	}
}

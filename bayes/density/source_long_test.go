//go:build long

package density_test

import (
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// Five million rows of 1000 features, 20 GB in float32, are drawn and go through mini-batches once, in less than 2 GiB
// of memory.
func TestMoreRowsThanMemoryLong(t *testing.T) {
	engine := computetest.XLA(t, "minutes with XLA, hours on the Go backend")
	bound, err := bayes.Model{
		Network: nn.MLP{Hidden: []int{8}}, Likelihood: bayes.Gaussian{StdDev: .5}, Prior: bayes.Normal{StdDev: 1},
		Stochastic: bayes.All(),
	}.Bind(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	source := dataset.Simulated{N: 5_000_000, Features: 1000, Noise: .5, Seed: 1}
	problem, _, err := density.NewSourceProblem(bound, source, density.SourceSettings{BatchSize: 8192})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	result := computetest.Must(fit.Sample(t.Context(), problem, mcmc.Chains{
		Kernel: mcmc.SGLD{StepSize: 1e-4}, Chains: 1, Draws: 611, WarmUp: mcmc.NoWarmUp,
	}, run.Settings{Engine: engine}))
	memory := computetest.PeakMemory(t)
	t.Logf("an epoch of 611 mini-batches in %v: %+v, %.2f GiB", time.Since(began),
		fit.Details[*mcmc.Details](result).Evaluations, memory)
	if memory > 2 {
		t.Errorf("%.2f GiB of memory, want at most 2", memory)
	}
}

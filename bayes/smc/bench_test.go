package smc_test

import (
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
)

// BenchmarkTempered is a run on concrete (8-10-1, noise of .3, 1030 rows) with 1000 particles, five moves of MALA at
// each temperature. It reports gradients per second, of the moves and of their starts, and the log evidence.
// testdata/blackjax_tempered.py is the same with BlackJAX, which makes a third of them.
func BenchmarkTempered(b *testing.B) { computetest.Bench(b, benchmarkTempered) }

func benchmarkTempered(b *testing.B, _ *compute.Engine) {
	concrete, err := dataset.Load("concrete")
	if err != nil {
		b.Fatal(err)
	}
	model := bayes.Model{
		Network: nn.MLP{Hidden: []int{10}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .3},
	}
	method := smc.Tempered{Kernel: mcmc.MALA{}, Particles: 1000, Moves: 5}
	if testing.Short() {
		method.Particles = 20
	}
	sample := func() (*fit.Result, *smc.Details) {
		result, err := fit.Fit(b.Context(), model, method, dataset.Parts{Train: concrete}, run.Settings{})
		if err != nil {
			b.Fatal(err)
		}
		return result, fit.Details[*smc.Details](result)
	}
	sample() // compiles
	gradients, seconds := 0, 0.
	var result *fit.Result
	for b.Loop() {
		var details *smc.Details
		result, details = sample()
		for _, at := range details.Trace {
			gradients += method.Particles * (at.Transitions + 1)
		}
		seconds += result.Elapsed.Seconds()
		b.ReportMetric(float64(len(details.Trace)), "temperatures")
	}
	b.ReportMetric(float64(gradients)/seconds, "gradients/s")
	b.ReportMetric(result.Draws.Evidence.Value, "log-evidence")
}

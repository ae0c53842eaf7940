package mcmc_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// BenchmarkSGHMC is SGHMC on mini-batches of 50 of 40 434 rows with 14 features (Adult's size), with a network
// 14-60-30-1 and ReLU: one operation is a move of all chains, of which every tenth is kept. Gradients a second on two
// processors of a Sapphire Rapids, in turn with BlackJAX 1.7.1 (JAX 0.10.2, ten steps on one mini-batch, which spares
// it nine gathers), one call after another and in one scan: 27 500 by one chain, BlackJAX 4400 and 6000; 35 600 by ten,
// 18 600 and 21 500; 35 000 by a hundred, 26 900 and 30 200. XLA multiplies each chain's small matrices on one
// processor, one after another, in both.
func BenchmarkSGHMC(b *testing.B) { computetest.Bench(b, benchmarkSGHMC) }

func benchmarkSGHMC(b *testing.B, _ *compute.Engine) {
	const rows, inputs, batch = 40_434, 14, 50
	bound, err := bayes.Model{Network: nn.MLP{Hidden: []int{60, 30}, Activation: nn.ReLU},
		Likelihood: bayes.Bernoulli{}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All()}.Bind(inputs, 1)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(0, 0))
	x, y := make([]float64, rows*inputs), make([]float64, rows)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	for i := range y {
		y[i] = float64(rng.IntN(2))
	}
	batches, err := dataset.NewEpochBatches(rows, batch, 1)
	if err != nil {
		b.Fatal(err)
	}
	for _, chains := range computetest.Cases(1, 10, 100) {
		b.Run(fmt.Sprintf("chains=%d", chains), func(b *testing.B) {
			problem := density.NewBatchProblem(bound, compute.Floats(compute.Float32, x, rows, inputs),
				compute.Floats(compute.Float32, y, rows), nil, batches, chains, 1)
			sample := func(draws int) *mcmc.Details {
				result, err := fit.Sample(b.Context(), problem, mcmc.Chains{
					Kernel: mcmc.SGHMC{LearningRate: 1e-7}, Chains: chains, Draws: draws, Thin: 10, WarmUp: mcmc.NoWarmUp,
				}, run.Settings{})
				if err != nil {
					b.Fatal(err)
				}
				return fit.Details[*mcmc.Details](result)
			}
			sample(1) // compiles
			b.ResetTimer()
			result := sample(max(1, b.N/10))
			b.ReportMetric(float64(result.Gradients)/result.Sampling.Seconds(), "gradients/s")
		})
	}
}

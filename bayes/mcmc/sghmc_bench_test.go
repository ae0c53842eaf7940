package mcmc_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/target"
)

// BenchmarkSGHMC is SGHMC on mini-batches of 50 of 40 434 rows with 14 features (Adult's size), with a network
// 14-60-30-1 and ReLU: one operation is a move of all chains, of which every tenth is kept. Beside a dozen other
// processes on two processors, in turn with BlackJAX 1.7.1 on the same posterior: 2800 to 5100 gradients a second by
// one chain, BlackJAX 2100 to 2500 one call a step and 2100 to 3200 in one scan; 12 000 to 21 000 by ten, BlackJAX
// 6600 to 10 900 and 7700 to 10 400. Pinned to one processor (taskset) one chain made 4900 to 6000 where it made 2000
// on two, before its normals were filled up: XLA shares loops among threads that are too small for it.
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
	for _, chains := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("chains=%d", chains), func(b *testing.B) {
			problem, err := target.ProblemByBatches(bound, compute.Floats(compute.Float32, x, rows, inputs),
				compute.Floats(compute.Float32, y, rows), nil, batches, chains, 1)
			if err != nil {
				b.Fatal(err)
			}
			sampler := mcmc.Sampler{Problem: problem, Kernel: mcmc.SGHMC{LearningRate: 1e-7}}
			defer sampler.Close()
			sample := func(draws int) *mcmc.Result {
				result, err := sampler.Sample(b.Context(), mcmc.Settings{Chains: chains, Draws: draws, Thin: 10,
					WarmUp: mcmc.NoWarmUp})
				if err != nil {
					b.Fatal(err)
				}
				return result
			}
			sample(1) // compiles
			b.ResetTimer()
			result := sample(max(1, b.N/10))
			b.ReportMetric(float64(result.Gradients)/result.Sampling.Seconds(), "gradients/s")
		})
	}
}

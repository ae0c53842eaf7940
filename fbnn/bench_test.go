package fbnn

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
)

// BenchmarkEmulated is 2000 steps of pCN by 100 chains on an emulated posterior of 3009 weights (Boston, 13-64-32-1),
// of which every hundredth is kept: 1.93 to 2.07 s on two processors of a Sapphire Rapids, and 2.24 where the machine
// is slower, in turn with JAX 0.10.2, whose same steps take 4.4 to 4.8 s one call a step, and 3.9 to 4.4 s in one
// lax.scan. The 300 000 normals of the proposals are .35 ms of a step. What is not XLA's is .02 ms, so that several
// steps in one program gain nothing.
func BenchmarkEmulated(b *testing.B) {
	computetest.Bench(b, func(b *testing.B, engine *compute.Engine) {
		parts, err := dataset.MustLoad("boston").PublishedSplit(dataset.Gal, 0)
		if err != nil {
			b.Fatal(err)
		}
		hidden, warmUp, draws := []int{64, 32}, 100, 20
		if testing.Short() {
			hidden, warmUp, draws = []int{4}, 10, 2
		}
		model := bayes.Model{
			Network: nn.MLP{Hidden: hidden}, Likelihood: bayes.Gaussian{StdDev: .25},
			Prior: bayes.Normal{StdDev: .3}, Stochastic: bayes.All(),
		}
		r := begun(b, model, CES{
			Uncorrected: true, PairsWarmUp: warmUp, PairsThin: 1, Regressor: Network{Epochs: warmUp / 5},
		}, parts, run.Settings{Engine: engine})
		if err := r.calibrate(b.Context()); err != nil {
			b.Fatal(err)
		}
		cheap, _, err := r.emulate(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		kernel := r.Sampling.(mcmc.PreconditionedCrankNicolson)
		kernel.Beta = .01
		cheap.Initial = r.problem.Initial
		cheap = cheap.Keyed("cheap", b.Name())
		for b.Loop() {
			if _, err := fit.Sample(b.Context(), cheap, mcmc.Chains{
				Kernel: kernel, Chains: 100, Draws: draws, Thin: 100, WarmUp: mcmc.NoWarmUp,
			}, run.Settings{Engine: engine}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

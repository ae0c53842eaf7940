package fbnn

import (
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
)

// BenchmarkEmulated is 2000 steps of pCN by 100 chains on an emulated posterior of 3009 weights (Boston, 13-64-32-1),
// of which every hundredth is kept: nearly all of its time is the random numbers of the proposals, 6e8 of them.
func BenchmarkEmulated(b *testing.B) {
	computetest.Bench(b, func(b *testing.B, engine *compute.Engine) {
		parts, err := dataset.Boston().PublishedSplit(dataset.Gal, 0)
		if err != nil {
			b.Fatal(err)
		}
		model := bayes.Model{
			Network: nn.MLP{Hidden: []int{64, 32}}, Likelihood: bayes.Gaussian{StdDev: .25},
			Prior: bayes.Normal{StdDev: .3}, Stochastic: bayes.All(),
		}
		job, err := newJob(model, parts, Settings{Engine: engine})
		if err != nil {
			b.Fatal(err)
		}
		prepared, err := CES{
			Uncorrected: true, PairsWarmUp: 100, PairsThin: 1, Regressor: Network{Epochs: 20}, Chains: 100, Draws: 20, Thin: 100,
			Sampling: mcmc.PreconditionedCrankNicolson{Beta: .01},
		}.Prepare(job)
		if err != nil {
			b.Fatal(err)
		}
		job.algorithm = prepared
		for b.Loop() {
			r, err := prepared.Sample(b.Context(), job)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(r.Sampling.Sampling.Seconds(), "s/2000steps")
		}
	})
}

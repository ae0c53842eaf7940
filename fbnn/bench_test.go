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
// of which every hundredth is kept: 2.05 to 2.08 s, a step .81 to .94 ms where it is fastest. The 300 000 normals of
// the proposals are .6 ms of a step, the emulator .15 ms, and what is not XLA's .02 ms, so that several steps in one
// program gain nothing. The same steps in JAX 0.10.2 take 2.0 to 2.5 s one call a step, and 1.9 s in one lax.scan,
// where its normals alone are .98 ms a call.
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
		prepared, err := CES{Uncorrected: true, PairsWarmUp: 100, PairsThin: 1, Regressor: Network{Epochs: 20}}.Prepare(job)
		if err != nil {
			b.Fatal(err)
		}
		job.algorithm = prepared
		r := &ces{CES: prepared.(CES), Job: job, result: &Result{}}
		if r.truth, err = newEvaluator(job, job.Problem); err != nil {
			b.Fatal(err)
		}
		defer r.truth.Close()
		if err := r.calibrate(b.Context()); err != nil {
			b.Fatal(err)
		}
		cheap, _, err := r.emulate(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		kernel := r.Sampling.(mcmc.PreconditionedCrankNicolson)
		kernel.Beta = .01
		cheap.Initial = job.Problem.Initial
		sampler := mcmc.Sampler{Problem: cheap, Kernel: kernel}
		defer sampler.Close()
		for b.Loop() {
			if _, err := sampler.Sample(b.Context(), mcmc.Settings{
				Chains: 100, Draws: 20, Thin: 100, WarmUp: mcmc.NoWarmUp, Engine: engine,
			}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

package mcmc_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
)

// network is the posterior of a model with 8 features on made-up rows, for the given number of chains, which begin at
// half of a draw from the prior.
func network(b *testing.B, model bayes.Model, rows, chains int) density.Problem {
	b.Helper()
	const inputs = 8
	bound, err := model.Bind(inputs, 1)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(0, 0))
	x, y := make([]float64, rows*inputs), make([]float64, rows)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	for i := range y {
		y[i] = math.Sin(2*x[i*inputs]) + .3*rng.NormFloat64()
	}
	problem, err := density.NewProblem(
		nil, bound, compute.Floats(compute.Float32, x, rows, inputs), compute.Floats(compute.Float32, y, rows), nil, chains,
		1,
	)
	if err != nil {
		b.Fatal(err)
	}
	problem.Climb = nil // the transitions alone are measured
	problem.Initial = func(rng random.Stream, dtype compute.DType, chains int) *graph.Node {
		return graph.MulScalar(bound.SamplePrior(rng, dtype, chains), .5)
	}
	return problem.Keyed("half the prior", bound.Model, rows, chains)
}

// BenchmarkHMC is full-batch HMC with 100 or 1000 chains and 10 leapfrog steps on a network's posterior: one operation
// is a transition of all chains. It reports useful gradients per second. testdata/blackjax_network.py is this benchmark
// and the next two with BlackJAX.
func BenchmarkHMC(b *testing.B) {
	computetest.Bench(b, func(b *testing.B, _ *compute.Engine) {
		for _, chains := range computetest.Cases(100, 1000) {
			b.Run(fmt.Sprintf("chains=%d", chains), func(b *testing.B) {
				gradients(b, wide(b, chains), mcmc.Chains{Kernel: mcmc.HMC{StepSize: .003, Steps: 10}, Chains: chains})
			})
		}
	})
}

// BenchmarkNUTS is the same with NUTS, whose trees end at MaxDepth: each of a move's gradients counts. It begins where
// chains have settled: until then trees are short, of very different lengths. On two processors (Zen 4) it makes 1.5
// times as many gradients as BlackJAX; the tree takes 5 of a move's 26 ms.
func BenchmarkNUTS(b *testing.B) {
	computetest.Bench(b, func(b *testing.B, _ *compute.Engine) {
		problem := wide(b, 100)
		of := func(depth int) mcmc.Chains {
			return mcmc.Chains{Kernel: mcmc.NUTS{StepSize: .003, MaxDepth: depth}, Chains: 100}
		}
		settled := sample(b, problem, of(6), 8).Draws
		start := make([]float64, 0, 100*problem.Dim)
		for chain := range settled.Chains {
			start = append(start, settled.At(chain, settled.PerChain-1)...)
		}
		problem.Start = compute.Floats(compute.Float32, start, settled.Chains, problem.Dim)
		for _, depth := range computetest.Cases(6, 10) {
			b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) { gradients(b, problem, of(depth)) })
		}
	})
}

// BenchmarkMCLMC is the chains of package auto: one operation is 20 moves, from draw to draw, of 20 chains on the
// posterior of the network that bayes.ModelFor proposes for a regression. It makes twice as many gradients as
// BlackJAX.
func BenchmarkMCLMC(b *testing.B) {
	computetest.Bench(b, func(b *testing.B, _ *compute.Engine) {
		problem := network(b, bayes.Model{
			Network:    nn.MLP{Hidden: []int{16, 16, 16}, Activation: nn.GELU},
			Likelihood: bayes.HeteroscedasticT{}, Prior: bayes.Normal{ByWidth: true},
			Stochastic: bayes.All().And(bayes.Names("noise/log_dof")),
		}, 927, 20)
		gradients(b, problem, mcmc.Chains{
			Kernel: mcmc.MCLMC{}, Chains: 20, Thin: 20,
			Tuned: mcmc.Tuned{StepSize: .05, Scale: slices.Repeat([]float64{1}, problem.Dim)},
		})
	})
}

// wide is the posterior of a network with two hidden layers of 50 units.
func wide(b *testing.B, chains int) density.Problem {
	return network(b, bayes.Model{
		Network:    nn.MLP{Hidden: []int{50, 50}, Activation: nn.Tanh},
		Likelihood: bayes.Gaussian{StdDev: .3}, Stochastic: bayes.All(),
	}, 927, chains)
}

// gradients makes a draw of each chain an operation, and reports useful gradients per second.
func gradients(b *testing.B, problem density.Problem, chains mcmc.Chains) {
	sample(b, problem, chains, 1) // compiles
	b.ResetTimer()
	result := sample(b, problem, chains, b.N)
	b.ReportMetric(float64(result.Evaluations.FullGradients)/result.Sampling.Seconds(), "gradients/s")
}

func sample(b *testing.B, problem density.Problem, chains mcmc.Chains, draws int) *mcmc.Details {
	b.Helper()
	chains.Draws, chains.WarmUp = draws, mcmc.NoWarmUp
	if testing.Short() {
		chains.Draws = 1
	}
	result, err := fit.Sample(b.Context(), problem, chains, run.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	return fit.Details[*mcmc.Details](result)
}

package mcmc_test

import (
	"fmt"
	"math"
	"math/rand/v2"
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

// network is the posterior of an MLP with 8 features, tanh and Gaussian noise of 0.3 on made-up rows, for the given
// number of chains. Weights have prior standard deviations of 1/sqrt(fan-in), biases 1, and so has phi: sampling phi is
// sampling standard normal parameters that are scaled in the network.
func network(b *testing.B, rows, chains int, hidden ...int) density.Problem {
	b.Helper()
	const inputs = 8
	bound, err := bayes.Model{
		Network:    nn.MLP{Hidden: hidden, Activation: nn.Tanh},
		Likelihood: bayes.Gaussian{StdDev: .3}, Stochastic: bayes.All(),
	}.Bind(inputs, 1)
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
// is a transition of all chains. It reports useful gradients per second.
func BenchmarkHMC(b *testing.B) {
	computetest.Bench(b, func(b *testing.B, _ *compute.Engine) {
		for _, chains := range computetest.Cases(100, 1000) {
			b.Run(fmt.Sprintf("chains=%d", chains), func(b *testing.B) {
				transitions(b, chains, mcmc.HMC{StepSize: .003, Steps: 10})
			})
		}
	})
}

// BenchmarkNUTS is the same with NUTS, whose trees end at MaxDepth: each of a move's gradients counts.
func BenchmarkNUTS(b *testing.B) {
	computetest.Bench(b, func(b *testing.B, _ *compute.Engine) {
		for _, depth := range computetest.Cases(6, 10) {
			b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
				transitions(b, 100, mcmc.NUTS{StepSize: .003, MaxDepth: depth})
			})
		}
	})
}

func transitions(b *testing.B, chains int, kernel mcmc.Kernel) {
	problem := network(b, 927, chains, 50, 50)
	sample := func(draws int) *mcmc.Details {
		result, err := fit.Sample(b.Context(), problem, mcmc.Chains{
			Kernel: kernel, Chains: chains, Draws: draws, WarmUp: mcmc.NoWarmUp,
		}, run.Settings{})
		if err != nil {
			b.Fatal(err)
		}
		return fit.Details[*mcmc.Details](result)
	}
	sample(1) // compiles
	b.ResetTimer()
	result := sample(b.N)
	b.ReportMetric(float64(result.Evaluations.FullGradients)/result.Sampling.Seconds(), "gradients/s")
}

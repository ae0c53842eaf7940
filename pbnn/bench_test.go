package pbnn

import (
	"fmt"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset/mnist"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// BenchmarkMove is one move of all chains, float32: of a line, and of a network of 60 and 60 units.
func BenchmarkMove(b *testing.B) { computetest.Bench(b, benchmarkMove) }

func benchmarkMove(b *testing.B, engine *compute.Engine) {
	for _, c := range computetest.Cases([]struct {
		name    string
		model   bayes.Model
		rows    int
		chains  int
		sampler Sampler
	}{
		{"line", line, 400, 32, Metropolis{Target: TargetFull{}, BatchSize: 20, StepSize: .01}},
		{"line", line, 400, 32, Metropolis{Target: TargetFull{}, BatchSize: 20, StepSize: .01, Proposal: Langevin}},
		{"line, all rows", line, 400, 32, AllRows{Target: TargetFullData{}, Kernel: mcmc.MALA{StepSize: .01}}},
		{"network", network(60, 60), 50_000, 100, Metropolis{Target: TargetExpected{}, BatchSize: 100, StepSize: 1e-3}},
		{"network, all rows", network(60, 60), 50_000, 100,
			AllRows{Target: TargetFullData{}, Kernel: mcmc.RandomWalkMetropolis{StepSize: 1e-4}}},
	}...) {
		name := c.name
		if m, ok := c.sampler.(Metropolis); ok {
			name += ", " + string(m.Proposal)
		}
		b.Run(fmt.Sprintf("%s/J=%d", name, c.chains), func(b *testing.B) {
			moves := 200
			if c.rows > 1000 {
				moves = 4
			}
			sampler, data := with(Sampling{Chains: c.chains, Draws: 1, Thin: moves, WarmUp: 2}, c.sampler), fittest.Data(c.rows)
			for b.Loop() {
				r := fitted(b, c.model, sampler, data, run.Settings{Engine: engine, Seed: 1})
				b.ReportMetric(r.chains.Sampling.Seconds()*1e3/float64(moves), "ms/move")
			}
		})
	}
}

func network(hidden ...int) bayes.Model {
	return bayes.Model{Network: nn.MLP{Hidden: hidden, Activation: nn.Tanh},
		Likelihood: bayes.Gaussian{StdDev: noiseStdDev}, Stochastic: bayes.All()}
}

// BenchmarkDigits is one move of 4 chains on the 10000 rows of MNIST's test part, n = 100 and M = 10: of a net of 20
// units, and of its last layer alone.
func BenchmarkDigits(b *testing.B) { computetest.Bench(b, benchmarkDigits) }

func benchmarkDigits(b *testing.B, engine *compute.Engine) {
	data, err := mnist.Test()
	if err != nil {
		b.Fatal(err)
	}
	moves := 100
	if testing.Short() {
		moves = 2
	}
	for _, part := range computetest.Cases([]struct {
		name       string
		stochastic bayes.Partition
	}{{"last layer", bayes.Layers(2)}, {"all layers", bayes.All()}}...) {
		model := bayes.Model{Network: nn.MLP{Hidden: []int{20}, Activation: nn.ReLU}, Likelihood: bayes.Categorical{},
			Stochastic: part.stochastic, Scaling: bayes.Scaling{KeepFeatures: true}}
		settings := run.Settings{Engine: engine, Seed: 1}
		mode := fitted(b, model, baseline.MAP{Training: baseline.Training{Epochs: 1}}, data, settings)
		for _, proposal := range computetest.Cases(RandomWalk, Langevin) {
			b.Run(part.name+", "+string(proposal), func(b *testing.B) {
				sampler := Metropolis{Sampling: Sampling{Draws: 1, Thin: moves, WarmUp: 2}, Target: TargetExpected{},
					BatchSize: 100, Batches: 10, StepSize: .01, Proposal: proposal}
				for b.Loop() {
					r := fitted(b, bayes.Model{}, fit.From{Trained: mode.Posterior, Method: sampler}, data, settings)
					b.ReportMetric(r.chains.Sampling.Seconds()*1e3/float64(moves), "ms/move")
				}
			})
		}
	}
}

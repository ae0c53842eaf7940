package pbnn

import (
	"context"
	"fmt"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
)

// BenchmarkMove is one move of all chains, float32: of a line, and of a network of 60 and 60 units.
func BenchmarkMove(b *testing.B) {
	for _, c := range []struct {
		name    string
		model   bayes.Model
		rows    int
		chains  int
		sampler Sampler
	}{
		{"line", bayesianLine(), 400, 32, Metropolis{Target: TargetFull{}, BatchSize: 20, StepSize: .01}},
		{"line", bayesianLine(), 400, 32, Metropolis{Target: TargetFull{}, BatchSize: 20, StepSize: .01, Proposal: Langevin}},
		{"line, all rows", bayesianLine(), 400, 32, AllRows{Target: TargetFullData{}, Kernel: mcmc.MALA{StepSize: .01}}},
		{"network", network(60, 60), 50_000, 100, Metropolis{Target: TargetExpected{}, BatchSize: 100, StepSize: 1e-3}},
		{"network, all rows", network(60, 60), 50_000, 100, AllRows{Target: TargetFullData{}, Kernel: mcmc.RandomWalkMetropolis{StepSize: 1e-4}}},
	} {
		name := c.name
		if m, ok := c.sampler.(Metropolis); ok {
			name += ", " + string(m.Proposal)
		}
		b.Run(fmt.Sprintf("%s/J=%d", name, c.chains), func(b *testing.B) {
			data := line(c.rows)
			for b.Loop() {
				moves := 200
				if c.rows > 1000 {
					moves = 4
				}
				result, err := Sample(context.Background(), c.model, data, c.sampler, Settings{Settings: mcmc.Settings{Chains: c.chains, Draws: 1, Thin: moves, WarmUp: 2, Seed: 1}})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(result.Chains.Sampling.Seconds()*1e3/float64(moves), "ms/move")
			}
		})
	}
}

func network(hidden ...int) bayes.Model {
	return bayes.Model{Network: nn.MLP{Hidden: hidden, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: noiseStdDev}, Stochastic: bayes.All()}
}

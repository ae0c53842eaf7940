//go:build long

package smc_test

import (
	"testing"

	"gobnn/bayes/mcmc"
	"gobnn/bayes/smc"
)

// TestSampleIsExactLong has the kernels and settings that TestSampleIsExact has not.
func TestSampleIsExactLong(t *testing.T) {
	rwm := mcmc.RandomWalkMetropolis{}
	samplesAreExact(t, []exactSampler{
		{name: "ladder", stdDev: .3, Tempered: smc.Tempered{
			Kernel: rwm, Particles: 400, Ladder: []float64{.02, .1, .3, .6, 1}, Moves: 5,
		}},
		{name: "random walk, waste-free", stdDev: .25, Tempered: smc.Tempered{
			Kernel: rwm, Particles: 1000, WasteFree: 5, Moves: 2,
		}},
		{name: "Crank-Nicolson", stdDev: .3, Tempered: smc.Tempered{
			Kernel: mcmc.PreconditionedCrankNicolson{Beta: .3}, Particles: 400, Moves: 6,
		}},
		{name: "HMC, length chosen", stdDev: .3, Tempered: smc.Tempered{Kernel: mcmc.HMC{}, Moves: 1}},
		{name: "NUTS", stdDev: .3, Tempered: smc.Tempered{Kernel: mcmc.NUTS{MaxDepth: 3}, Particles: 200, Moves: 1}},
		{name: "own step", stdDev: .3, Tempered: smc.Tempered{
			Kernel: mcmc.RandomWalkMetropolis{StepSize: 1.2}, Particles: 400, Moves: 5,
		}},
	})
}

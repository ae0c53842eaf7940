//go:build long

package smc_test

import (
	"testing"

	"gobnn/bayes/mcmc"
	"gobnn/bayes/smc"
)

// TestSampleIsExactLong has the kernels and settings that TestSampleIsExact has not.
func TestSampleIsExactLong(t *testing.T) {
	rwm, data := mcmc.RandomWalkMetropolis{}, smc.DataTempering
	samplesAreExact(t, []exactSampler{
		{name: "ladder", kernel: rwm, s: smc.Settings{Ladder: []float64{.02, .1, .3, .6, 1}, Moves: 5}, stdDev: .3},
		{name: "random walk, data", kernel: rwm, s: smc.Settings{Tempering: data, Moves: 5}, stdDev: .4},
		{name: "random walk, waste-free", kernel: rwm, s: smc.Settings{Particles: 1000, WasteFree: 5, Moves: 2},
			stdDev: .25},
		{name: "Crank-Nicolson", kernel: mcmc.PreconditionedCrankNicolson{Beta: .3}, s: smc.Settings{Moves: 6}, stdDev: .3},
		{name: "NUTS", kernel: mcmc.NUTS{MaxDepth: 3}, s: smc.Settings{Particles: 200, Moves: 1}, stdDev: .3},
		{name: "own step", kernel: mcmc.RandomWalkMetropolis{StepSize: .35},
			s: smc.Settings{Resampler: smc.Systematic, FixedScale: true, Moves: 5}, stdDev: .3},
	})
}

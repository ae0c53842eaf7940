//go:build long

package ohsmc

import (
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/smc"
)

// TestCrescentLong is TestCrescent's case of OHSMC: its random walk has variance 0.01, since with the paper's 0.001 psi
// comes to 0.5 to 0.95, as the particles do not spread along the crescent.
func TestCrescentLong(t *testing.T) {
	learnCrescent(t, onCrescent{"OHSMC", OpenHorizon{Kernel: mcmc.RandomWalk{Variance: .01}}, 1000, 10, 150, 10})
}

// TestProposalsLong has XLA compile each proposal.
func TestProposalsLong(t *testing.T) {
	leaveTheSameTarget(t, func(engine *compute.Engine, _ string, compile bool) bool { return engine.IsXLA() && compile })
}

// TestSMCIsExactLong is TestSMCIsExact with the other kernels and schemes of resampling.
func TestSMCIsExactLong(t *testing.T) {
	smcIsExact(t, []exactSMC{
		{"preconditioned random walk", SMC{Kernel: mcmc.RandomWalkMetropolis{StepSize: 1.2}, Moves: 2, Precondition: true},
			smc.Systematic},
		{"Crank-Nicolson", SMC{Kernel: mcmc.PreconditionedCrankNicolson{Beta: .5}, Moves: 2}, smc.Stratified},
		{"NUTS", SMC{Kernel: mcmc.NUTS{StepSize: .6, MaxDepth: 3}, Moves: 1, Precondition: true}, smc.Multinomial},
	})
}

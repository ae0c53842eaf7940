//go:build long

package ohsmc

import (
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/mcmc"
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

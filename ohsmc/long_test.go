//go:build long

package ohsmc

import (
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
)

// TestProposalsLong has XLA compile each proposal.
func TestProposalsLong(t *testing.T) {
	leaveTheSameTarget(t, func(engine *compute.Engine, _ string, compile bool) bool { return engine.IsXLA() && compile })
}

// TestSMCIsExactLong is TestSMCIsExact with the other kernels and schemes of resampling.
func TestSMCIsExactLong(t *testing.T) {
	smcIsExact(t, map[string]SMC{
		"preconditioned random walk": {Kernel: mcmc.RandomWalkMetropolis{StepSize: 1.2}, Moves: 2, Precondition: true},
		"Crank-Nicolson":             {Kernel: mcmc.PreconditionedCrankNicolson{Beta: .5}, Moves: 2},
		"NUTS": {Training: multinomial, Kernel: mcmc.NUTS{StepSize: .6, MaxDepth: 3}, Moves: 1,
			Precondition: true},
	})
}

// The standard error that a single run states covers the analytic log evidence: of 100 runs with multinomial
// resampling about 68 within one and 95 within two. The shares are binomial; 52 and 85 of 100 are below their 0.1 %
// quantiles, 83 is above that of one standard error.
func TestStatedErrorLong(t *testing.T) {
	data := fittest.Data(30)
	exact := posteriorOf(t, data, 1)
	result, details := fitted(t, fittest.Line(1), SMC{
		Training: particles.Training{Particles: 500, BatchSize: 30, Epochs: 100, Resampler: smc.Multinomial},
		Kernel:   mcmc.RandomWalkMetropolis{StepSize: 1}, Moves: 3, Precondition: true,
	}, dataset.Parts{Train: data}, run.Settings{Seed: 1})
	one, two := 0, 0
	for _, r := range details.Trace {
		z := math.Abs(r.LogEvidence-exact.logEvidence) / r.LogEvidenceStdErr
		if z < 1 {
			one++
		}
		if z < 2 {
			two++
		}
	}
	t.Logf("of 100 runs %d lie within one stated standard error of the analytic log evidence, %d within two", one, two)
	if one < 52 || one > 83 || two < 85 {
		t.Errorf("of 100 runs %d lie within one stated standard error of the analytic log evidence, %d within two", one, two)
	}
	if last := details.Trace[99].LogEvidence; result.Posterior.Evidence().Value != last {
		t.Errorf("the evidence is %v, of the last pass %v", result.Posterior.Evidence().Value, last)
	}
}

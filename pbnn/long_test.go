//go:build long

package pbnn

import (
	"testing"

	"gobnn/bayes/mcmc"
)

// TestExactOnALineLong has the samplers that TestExactOnALine has not.
func TestExactOnALineLong(t *testing.T) {
	t.Parallel()
	exactOnALine(t, []exactCase{
		{name: "penalty, expected", sampler: Metropolis{Target: TargetExpected{}, BatchSize: 10, Batches: 10,
			StepSize: step(1, 10)}},
		{name: "penalised MALA, full", sampler: Metropolis{Target: TargetFull{}, BatchSize: 10, Batches: 10,
			Proposal: Langevin, StepSize: step(.6, rowsOfLine)}},
		{name: "penalty, within", sampler: Metropolis{Target: TargetFull{}, BatchSize: 100, Batches: 1,
			Estimate: WithinBatches, StepSize: step(.5, rowsOfLine)}},
		{name: "MALA, tempered", sampler: AllRows{Target: TargetTempered{Points: 10},
			Kernel: mcmc.MALA{StepSize: step(1, 10)}}},
		{name: "naive, expected", sampler: Metropolis{Target: TargetExpected{}, BatchSize: 10, Batches: 2, Rule: Naive,
			StepSize: step(.6, 10)}, biased: true},
		{name: "naive MALA", sampler: Metropolis{Target: TargetExpected{}, BatchSize: 10, Batches: 2, Rule: Naive,
			Proposal: Langevin, StepSize: step(.8, 10)}, biased: true},
		{name: "ULA, large steps", sampler: AllRows{Target: TargetFullData{},
			Kernel: mcmc.ULA{StepSize: step(1, rowsOfLine)}}, biased: true},
	})
}

// TestConfidenceIsExactLong is TestConfidenceIsExact with Langevin proposals.
func TestConfidenceIsExactLong(t *testing.T) {
	t.Parallel()
	confidenceIsExact(t, confidenceCase{"Langevin, expected", 200, Confidence{Target: TargetExpected{Points: 2},
		BatchSize: 100, Error: .01, Proposal: Langevin, StepSize: step(1.2, 2)}, 1})
}

// TestShardsAreExactLong is TestShardsAreExact with Langevin proposals.
func TestShardsAreExactLong(t *testing.T) {
	t.Parallel()
	shardsAreExact(t, Langevin)
}

// TestBarkerInvariantLong is TestBarkerInvariant with Langevin proposals.
func TestBarkerInvariantLong(t *testing.T) {
	t.Parallel()
	barkerInvariant(t, Langevin)
}

// TestDevicesLong is TestDevices with the other samplers.
func TestDevicesLong(t *testing.T) {
	sameOnDevices(t,
		Metropolis{Target: TargetExpected{}, BatchSize: 4, Batches: 4, Proposal: Langevin, Estimate: WithinBatches,
			StepSize: .2},
		Barker{Target: TargetFull{}, BatchSize: 4, Batches: 4, StepSize: .2},
		Unadjusted{Target: TargetFull{}, BatchSize: 4, Kernel: mcmc.SGLD{StepSize: .001}},
		AllRows{Target: TargetTempered{Points: 5}, Kernel: mcmc.MALA{StepSize: .2}})
}

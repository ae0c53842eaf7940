//go:build long

package pbnn

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"

	"gonum.org/v1/gonum/mat"
)

// TestExactOnALineLong has the samplers that TestExactOnALine has not.
func TestExactOnALineLong(t *testing.T) {
	t.Parallel()
	exactOnALine(t, computetest.Engines(t)[0], 2000, []exactCase{
		{name: "penalty, expected", points: 10, sampler: Metropolis{Target: TargetExpected{}, BatchSize: 10, Batches: 10,
			StepSize: step(1, 10)}},
		{name: "penalised MALA, full", points: rowsOfLine,
			sampler: Metropolis{Target: TargetFull{}, BatchSize: 10, Batches: 10,
				Proposal: Langevin, StepSize: step(.6, rowsOfLine)}},
		{name: "penalty, one batch", points: 10, sampler: Metropolis{Target: TargetExpected{}, BatchSize: 10, Batches: 15,
			Estimate: OneBatch, StepSize: step(.4, 10)}},
		{name: "SGLD, large steps", points: rowsOfLine, sampler: Unadjusted{Target: TargetFull{}, BatchSize: 10,
			Kernel: mcmc.SGLD{StepSize: math.Pow(step(.6, rowsOfLine), 2)}}, biased: true},
		{name: "penalty, within", points: rowsOfLine, sampler: Metropolis{Target: TargetFull{}, BatchSize: 100, Batches: 1,
			Estimate: WithinBatches, StepSize: step(.5, rowsOfLine)}},
		{name: "MALA, tempered", points: 10, sampler: AllRows{Target: TargetTempered{Points: 10},
			Kernel: mcmc.MALA{StepSize: step(1, 10)}}},
		{name: "naive, expected", points: 10,
			sampler: Metropolis{Target: TargetExpected{}, BatchSize: 10, Batches: 2, Rule: Naive,
				StepSize: step(1, 10)}, biased: true},
		{name: "naive MALA", points: 10,
			sampler: Metropolis{Target: TargetExpected{}, BatchSize: 10, Batches: 2, Rule: Naive,
				Proposal: Langevin, StepSize: step(.8, 10)}, biased: true},
		{name: "SGLD on all rows, large steps", points: rowsOfLine, sampler: AllRows{Target: TargetFullData{},
			Kernel: mcmc.SGLD{StepSize: math.Pow(step(1, rowsOfLine), 2)}}, biased: true},
	})
}

// TestDevicesLong is TestDevices with the other samplers.
func TestDevicesLong(t *testing.T) {
	sameOnDevices(t,
		Metropolis{Target: TargetExpected{}, BatchSize: 4, Batches: 4, Proposal: Langevin, Estimate: WithinBatches,
			StepSize: .2},
		Unadjusted{Target: TargetFull{}, BatchSize: 4, Kernel: mcmc.SGLD{StepSize: .001}},
		AllRows{Target: TargetTempered{Points: 5}, Kernel: mcmc.MALA{StepSize: .2}})
}

// A level's posterior from rows of which one is far out: one number with a known distribution. Mini-batches of 2 miss
// it for most of the time: the variance of the draws is off, and the result says that the noise is not Gaussian. With
// a quarter of the rows in each it is neither.
func TestWarnsOfSkewnessLong(t *testing.T) {
	const rows = 100
	data := &dataset.Dataset{Name: "outliers", Task: dataset.Regression, Features: []string{"zero"}, Target: "y",
		X: mat.NewDense(rows, 1, nil), Y: make([]float64, rows)}
	data.Y[30] = 40
	variance := 1 / (1 + 2.)
	center := variance * 2 * .4
	for _, c := range []struct {
		size, batches int
		warns         bool
	}{{2, 10, true}, {25, 4, false}} {
		r := fitted(t, fittest.Raw(fittest.Line(1)), Metropolis{
			Sampling: Sampling{Chains: 4, Draws: 2500, WarmUp: 200}, Target: TargetExpected{Points: 2}, BatchSize: c.size,
			Batches: c.batches, StepSize: .8,
		}, data, short(t))
		second, n := 0.0, 0.0
		for _, chain := range r.chains.Draws.Coordinate(1) {
			for _, b := range chain {
				second += (b - center) * (b - center) / variance
				n++
			}
		}
		off := second/n - 1
		t.Logf("n %d: skewness %.3f, sigma^2 %.2f, bias %.3f, variance off by %.3f, acceptance %.2f, %q", c.size, r.Skewness,
			r.Noise, r.Bias, off, r.Acceptance, r.Warnings)
		if warned := len(r.Warnings) == 1 && strings.Contains(r.Warnings[0], "not Gaussian"); warned != c.warns ||
			(r.Bias > maxBias) != c.warns {
			t.Errorf("n %d: bias %.3f, warnings %q", c.size, r.Bias, r.Warnings)
		}
		if c.warns != (math.Abs(off) > .15) {
			t.Errorf("n %d: the variance is off by %.3f", c.size, off)
		}
	}
}

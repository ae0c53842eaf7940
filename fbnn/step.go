package fbnn

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// This file chooses the step size of the sampling kernel of CES, by what the true posterior accepts; the Beta of a pCN
// is in beta.go.

// stepped is the sampling kernel with its step size chosen. Without PaperMode, the Beta of a pCN is at most the one
// that the true posterior accepts with probability .3. An HMC without a step size gets that of chosenStep.
func (r *ces) stepped(ctx context.Context, cheap density.Problem) (mcmc.Kernel, error) {
	begin := r.pairs.theta.Slice(max(0, r.Pairs-atOnce), r.Pairs, 0, r.Data.Bound.D)
	var err error
	if hmc, ok := r.unstepped(); ok {
		hmc.StepSize, err = r.chosenStep(ctx, cheap, begin, hmc)
		r.result.StepSize = hmc.StepSize
		r.choose("sampling_step_size", hmc.StepSize)
		return hmc, err
	}
	pcn, ok := r.Sampling.(mcmc.PreconditionedCrankNicolson)
	if !ok {
		return r.Sampling, nil
	}
	if r.result.TrueBeta, err = r.acceptedBeta(ctx, r.truth, begin, pcn); err != nil {
		return nil, err
	}
	limit := r.result.TrueBeta
	if r.PaperMode {
		emulator, err := newEvaluator(r.Job, cheap)
		if err != nil {
			return nil, err
		}
		defer emulator.Close()
		if limit, err = r.acceptedBeta(ctx, emulator, begin, pcn); err != nil {
			return nil, err
		}
	}
	switch {
	case pcn.Beta == 0:
		pcn.Beta = limit
	case pcn.Beta > limit && !r.PaperMode:
		r.result.Warnings = append(r.result.Warnings, fmt.Sprintf("CES.Sampling.Beta is %.3g, but the true chain needs %.3g "+
			"to be accepted with probability %.1f: that was taken", pcn.Beta, limit, wanted))
		pcn.Beta = limit
	}
	r.result.Beta = pcn.Beta
	r.choose("sampling_beta", pcn.Beta)
	return pcn, nil
}

// The candidates for HMC's step size are halved from the largest until the second stage accepts nearly all ends of
// trajectories. Smaller steps would only shorten the trajectories.
const (
	largestStep   = 1.
	mostHalvings  = 20
	nearlyAll     = .9
	leastAccepted = .15 // mean acceptance over atOnce ends: below it the mean squared jump is of too few to be reliable
)

// chosenStep is the step size of an HMC on the emulated posterior whose ends the true posterior accepts or rejects. It
// is the candidate with the largest expected squared jump (Pasarica and Gelman 2010) over trajectories from the rows of
// begin, [n, D], with the same momenta for each candidate. It is not enough that the emulated energy is conserved: in
// directions in which the emulator has learnt nothing the trajectory runs straight on by its momentum, and the true
// posterior rejects its end.
func (r *ces) chosenStep(ctx context.Context, cheap density.Problem, begin mat.Matrix, k mcmc.HMC) (float64, error) {
	emulator, err := newEvaluator(r.Job, cheap)
	if err != nil {
		return 0, err
	}
	defer emulator.Close()
	n, d := begin.Dims()
	start := mat.NewDense(atOnce, d, nil)
	for i := range atOnce {
		mat.Row(start.RawRowView(i), i%n, begin)
	}
	trueAtStart, err := r.truth.logDensity(ctx, start)
	if err != nil {
		return 0, err
	}
	cheapAtStart, err := emulator.logDensity(ctx, start)
	if err != nil {
		return 0, err
	}
	r.spent.Full += atOnce
	r.spent.Partial += atOnce
	// If the true posterior accepts enough ends at no candidate, the step size is one smaller than all of them. If the
	// sampling does not move with that either, it ends with mcmc.ErrStuck, whose text has the numbers.
	best, furthest, step := largestStep*math.Pow(2, -mostHalvings), 0., largestStep
	for range mostHalvings {
		end, cheapAtEnd, err := r.transitions(ctx, emulator, start, cheapAtStart, k, step)
		if err != nil {
			return 0, err
		}
		trueAtEnd, err := r.truth.logDensity(ctx, end)
		if err != nil {
			return 0, err
		}
		r.spent.Full += atOnce
		accepted, jump := 0., 0.
		for i := range atOnce {
			squared := square(floats.Distance(end.RawRowView(i), start.RawRowView(i), 2))
			ratio := math.Exp(trueAtEnd[i] - trueAtStart[i] - cheapAtEnd[i] + cheapAtStart[i])
			if squared > 0 && ratio > 0 { // not NaN
				accepted += min(1, ratio) / atOnce
				jump += min(1, ratio) * squared / atOnce
			}
		}
		if accepted >= leastAccepted && jump > furthest {
			best, furthest = step, jump
		}
		if accepted > nearlyAll {
			break
		}
		step /= 2
	}
	return best, nil
}

// transitions are the HMC transitions on the emulated posterior between two evaluations of the true one, from each row
// of start, given the emulated log-density there. It returns the ends, and the emulated log-density at the ends.
func (r *ces) transitions(
	ctx context.Context, emulator *evaluator, start *mat.Dense, cheapAtStart []float64, k mcmc.HMC, step float64,
) (*mat.Dense, []float64, error) {
	rng := rand.New(rand.NewPCG(r.Seed, 0x73746570))
	count, d := start.Dims()
	steps := cmp.Or(k.Steps, 10)
	from, density := mat.DenseCopyOf(start), append([]float64(nil), cheapAtStart...)
	at, momentum := mat.NewDense(count, d, nil), mat.NewDense(count, d, nil)
	var kick mat.Dense
	for range r.Transitions {
		at.Copy(from)
		momentum.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, momentum)
		before := kinetic(momentum)
		for i := range steps + 1 { // half a kick at both ends
			gradient, err := emulator.slope(ctx, at)
			if err != nil {
				return nil, nil, err
			}
			share := step
			if i == 0 || i == steps {
				share /= 2
			}
			kick.Scale(share, gradient)
			momentum.Add(momentum, &kick)
			if i < steps {
				kick.Scale(step, momentum)
				at.Add(at, &kick)
			}
		}
		r.spent.PartialGradients += count * (steps + 1)
		r.spent.Partial += count
		after, err := emulator.logDensity(ctx, at)
		if err != nil {
			return nil, nil, err
		}
		for i, v := range kinetic(momentum) {
			if rng.Float64() < math.Exp(after[i]-density[i]-v+before[i]) { // not where it is NaN
				copy(from.RawRowView(i), at.RawRowView(i))
				density[i] = after[i]
			}
		}
	}
	return from, density, nil
}

// kinetic is |p|^2 / 2 of each row.
func kinetic(momentum *mat.Dense) []float64 {
	count, _ := momentum.Dims()
	energy := make([]float64, count)
	for i := range energy {
		energy[i] = floats.Dot(momentum.RawRowView(i), momentum.RawRowView(i)) / 2
	}
	return energy
}

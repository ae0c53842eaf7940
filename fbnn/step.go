package fbnn

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// This file chooses the step size of the sampling kernel of CES, by what the true posterior accepts.

// stepped is the sampling kernel with its step size chosen. Without PaperMode, the Beta of a pCN is at most the one
// that the true posterior accepts with probability .3. An HMC without a step size gets the step size of chosenStep.
func (r *ces) stepped(ctx context.Context, cheap density.Problem) (mcmc.Kernel, error) {
	begin := r.pairs.theta.Slice(max(0, r.Pairs-atOnce), r.Pairs, 0, r.Bound.D)
	emulator, err := newEvaluator(r.job, cheap)
	if err != nil {
		return nil, err
	}
	defer emulator.Close()
	if hmc, ok := r.unstepped(); ok {
		hmc.StepSize, err = r.chosenStep(ctx, cheap, emulator, begin, hmc)
		r.details.stepSize = hmc.StepSize
		r.Choose("sampling_step_size", hmc.StepSize)
		return hmc, err
	}
	pcn, ok := r.Sampling.(mcmc.PreconditionedCrankNicolson)
	if !ok {
		return r.Sampling, nil
	}
	if r.details.trueBeta, err = r.acceptedBeta(ctx, r.truth, begin, pcn); err != nil {
		return nil, err
	}
	limit := r.details.trueBeta
	if r.PaperMode {
		if limit, err = r.acceptedBeta(ctx, emulator, begin, pcn); err != nil {
			return nil, err
		}
	}
	if pcn.Beta == 0 || pcn.Beta > limit && !r.PaperMode {
		r.doubtBeta(pcn.Beta, limit)
		pcn.Beta = limit
	}
	r.details.Beta = pcn.Beta
	r.Choose("sampling_beta", pcn.Beta)
	return pcn, nil
}

// wanted is the acceptance for which a Beta is chosen.
const wanted = .3

// acceptedBeta is the Beta of a pCN, at most 1, at which proposals from the rows of begin, [n, D], are accepted with a
// mean probability of .3. It is found by bisection on its logarithm, with the same noise for each Beta.
func (r *ces) acceptedBeta(
	ctx context.Context, e *evaluator, begin mat.Matrix, k mcmc.PreconditionedCrankNicolson,
) (float64, error) {
	from := repeated(begin)
	_, d := begin.Dims()
	noise, proposal := mat.NewDense(atOnce, d, nil), mat.NewDense(atOnce, d, nil)
	rng := rand.New(rand.NewPCG(r.Seed, 0x62657461))
	noise.Apply(func(_, c int, _ float64) float64 { return k.StdDev[c] * rng.NormFloat64() }, noise)
	// The log-density relative to the normal distribution that proposals leave invariant, up to a constant. Its
	// difference between two places is pCN's log acceptance ratio.
	beyond := func(theta *mat.Dense) ([]float64, error) {
		density, err := e.logDensity(ctx, theta)
		for i := range density {
			for c, v := range theta.RawRowView(i) {
				density[i] += square(v/k.StdDev[c]) / 2
			}
		}
		return density, err
	}
	before, err := beyond(from)
	if err != nil {
		return 0, err
	}
	const halvings = 12
	low, high := math.Log(1e-7), 0. // of log beta
	for range halvings {
		beta := math.Exp((low + high) / 2)
		keep := math.Sqrt(1 - beta*beta)
		for i := range atOnce {
			row := proposal.RawRowView(i)
			floats.ScaleTo(row, beta, noise.RawRowView(i))
			floats.AddScaled(row, keep, from.RawRowView(i))
		}
		after, err := beyond(proposal)
		if err != nil {
			return 0, err
		}
		acceptance := 0.
		for i := range after {
			if ratio := math.Exp(after[i] - before[i]); ratio > 0 { // not NaN
				acceptance += min(1, ratio) / atOnce
			}
		}
		if acceptance > wanted {
			low = math.Log(beta)
		} else {
			high = math.Log(beta)
		}
	}
	if e == r.truth {
		r.spent.Full += (1 + halvings) * atOnce
	} else {
		r.spent.Partial += (1 + halvings) * atOnce
	}
	return math.Exp((low + high) / 2), nil
}

// repeated returns atOnce rows, [atOnce, D]: the rows of begin, [n, D], repeated in order.
func repeated(begin mat.Matrix) *mat.Dense {
	n, d := begin.Dims()
	out := mat.NewDense(atOnce, d, nil)
	for i := range atOnce {
		mat.Row(out.RawRowView(i), i%n, begin)
	}
	return out
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
func (r *ces) chosenStep(
	ctx context.Context, cheap density.Problem, emulator *evaluator, begin mat.Matrix, k mcmc.HMC,
) (float64, error) {
	start := repeated(begin)
	_, d := begin.Dims()
	places := compute.Floats(r.DType, start.RawMatrix().Data, atOnce, d)
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
	k.Jitter, k.Steps = 0, cmp.Or(k.Steps, 10)
	transition, err := r.transition(emulator, cheap, k)
	if err != nil {
		return 0, err
	}
	defer transition.Close()
	// If the true posterior accepts enough ends at no candidate, the step size is one smaller than all of them. If the
	// sampling does not move with that either, it ends with mcmc.ErrStuck, whose text has the numbers.
	best, furthest, step := largestStep*math.Pow(2, -mostHalvings), 0., largestStep
	for range mostHalvings {
		if err := context.Cause(ctx); err != nil {
			return 0, fmt.Errorf("fbnn: choosing a step size: %w", err)
		}
		values, err := transition.Run(emulator.State(), places, step)
		if err != nil {
			return 0, fmt.Errorf("fbnn: choosing a step size: %w", err)
		}
		ends := mat.NewDense(atOnce, d+1, values)
		end, cheapAtEnd := mat.DenseCopyOf(ends.Slice(0, atOnce, 0, d)), mat.Col(nil, d, ends)
		trueAtEnd, err := r.truth.logDensity(ctx, end)
		if err != nil {
			return 0, err
		}
		r.spent.Full += atOnce
		r.spent.PartialGradients += atOnce * (k.Steps + 1)
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

// transition is a program that makes a transition on the emulated posterior from places, [atOnce, D], given the step
// size: with the same momenta at each call. It returns the ends and the emulated log-densities there, [atOnce, D+1].
func (r *ces) transition(emulator *evaluator, cheap density.Problem, k mcmc.HMC) (*compute.Program, error) {
	carrier, err := mcmc.NewCarrier(r.Engine, k, shapes.Make(r.DType, atOnce, cheap.Dim),
		func(g *graph.Graph) density.Target { return cheap.In(cheap.Parameters(g), nil) })
	if err != nil {
		return nil, err
	}
	return compute.NewProgram(r.Engine, "fbnn transition", emulator.State().Names(), nil,
		func(nodes compute.Nodes, in []*Node) (compute.Nodes, *Node) {
			target, rng := cheap.Target(nodes, nil), random.New(in[0].Graph(), r.Seed)
			at := carrier.Start(rng.Named("start"), in[0], target)
			unfinished := OnesLike(at[carrier.LogDensity()])
			for range k.Steps {
				next, ended, _ := carrier.MoveUnfinished(
					rng.Named("move"), at, unfinished, target, mcmc.Tuning{StepSize: in[1]})
				at, unfinished = next, Sub(unfinished, ended)
			}
			logDensity := ExpandAxes(at[carrier.LogDensity()], 1)
			return nil, Reshape(Concatenate([]*Node{at[carrier.Phi()], logDensity}, 1), in[0].Shape().Size()+atOnce)
		})
}

package fbnn

import (
	"context"
	"math"
	"math/rand/v2"

	"gobnn/bayes/mcmc"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// wanted is the acceptance for which a Beta is chosen.
const wanted = .3

// acceptedBeta is the Beta of a pCN, at most 1, at which proposals from the rows of begin, [n, D], are accepted with a
// mean probability of .3. It is found by bisection on its logarithm.
func (r *ces) acceptedBeta(
	ctx context.Context, e *evaluator, begin mat.Matrix, k mcmc.PreconditionedCrankNicolson,
) (float64, error) {
	n, d := begin.Dims()
	mean := k.Mean
	if len(mean) == 0 {
		mean = make([]float64, d)
	}
	from, noise := mat.NewDense(atOnce, d, nil), mat.NewDense(atOnce, d, nil)
	rng := rand.New(rand.NewPCG(r.Seed, 0x62657461))
	for i := range atOnce {
		mat.Row(from.RawRowView(i), i%n, begin)
		for c, s := range k.StdDev {
			noise.Set(i, c, s*rng.NormFloat64())
		}
	}
	// The log-density minus that of the normal distribution which the proposals leave invariant (up to a constant): its
	// difference between two places is pCN's log acceptance ratio.
	beyond := func(theta *mat.Dense) ([]float64, error) {
		density, err := e.logDensity(ctx, theta)
		if err != nil {
			return nil, err
		}
		for i := range density {
			for c, v := range theta.RawRowView(i) {
				z := (v - mean[c]) / k.StdDev[c]
				density[i] += z * z / 2
			}
		}
		return density, nil
	}
	before, err := beyond(from)
	if err != nil {
		return 0, err
	}
	evaluated := atOnce
	proposal := mat.NewDense(atOnce, d, nil)
	low, high := math.Log(1e-7), 0. // of log beta
	for range 12 {
		beta := math.Exp((low + high) / 2)
		keep := math.Sqrt(1 - beta*beta)
		for i := range atOnce {
			row := proposal.RawRowView(i)
			floats.AddScaledTo(row, mean, beta, noise.RawRowView(i))
			floats.AddScaled(row, keep, from.RawRowView(i))
			floats.AddScaled(row, -keep, mean)
		}
		after, err := beyond(proposal)
		if err != nil {
			return 0, err
		}
		evaluated += atOnce
		accepted := 0.
		for i := range after {
			if ratio := math.Exp(after[i] - before[i]); ratio > 0 { // not NaN
				accepted += min(1, ratio) / float64(atOnce)
			}
		}
		if accepted > wanted {
			low = math.Log(beta)
		} else {
			high = math.Log(beta)
		}
	}
	if e == r.truth {
		r.spent.Full += evaluated
	} else {
		r.spent.Partial += evaluated
	}
	return math.Exp((low + high) / 2), nil
}

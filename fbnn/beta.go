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
	t := newBetaTrial(e, begin, k, r.Seed)
	before, err := t.beyond(ctx, t.from)
	if err != nil {
		return 0, err
	}
	low, high := math.Log(1e-7), 0. // of log beta
	for range 12 {
		beta := math.Exp((low + high) / 2)
		acceptance, err := t.acceptance(ctx, beta, before)
		if err != nil {
			return 0, err
		}
		if acceptance > wanted {
			low = math.Log(beta)
		} else {
			high = math.Log(beta)
		}
	}
	if e == r.truth {
		r.spent.Full += t.evaluated
	} else {
		r.spent.Partial += t.evaluated
	}
	return math.Exp((low + high) / 2), nil
}

// betaTrial makes a pCN's proposals for any Beta from the same places with the same noise.
type betaTrial struct {
	evaluator    *evaluator
	mean, stdDev []float64  // [D], of the normal distribution that the proposals leave invariant
	from, noise  *mat.Dense // [atOnce, D]
	proposal     *mat.Dense // [atOnce, D], of the last Beta
	evaluated    int        // log-densities so far
}

func newBetaTrial(e *evaluator, begin mat.Matrix, k mcmc.PreconditionedCrankNicolson, seed uint64) *betaTrial {
	n, d := begin.Dims()
	t := &betaTrial{evaluator: e, mean: k.Mean, stdDev: k.StdDev, proposal: mat.NewDense(atOnce, d, nil)}
	if len(t.mean) == 0 {
		t.mean = make([]float64, d)
	}
	t.from, t.noise = mat.NewDense(atOnce, d, nil), mat.NewDense(atOnce, d, nil)
	rng := rand.New(rand.NewPCG(seed, 0x62657461))
	for i := range atOnce {
		mat.Row(t.from.RawRowView(i), i%n, begin)
		for c, s := range k.StdDev {
			t.noise.Set(i, c, s*rng.NormFloat64())
		}
	}
	return t
}

// beyond is the log-density minus that of the normal distribution (up to a constant) at the rows of theta, [atOnce, D]:
// [atOnce]. Its difference between two places is pCN's log acceptance ratio.
func (t *betaTrial) beyond(ctx context.Context, theta *mat.Dense) ([]float64, error) {
	density, err := t.evaluator.logDensity(ctx, theta)
	if err != nil {
		return nil, err
	}
	t.evaluated += atOnce
	for i := range density {
		for c, v := range theta.RawRowView(i) {
			z := (v - t.mean[c]) / t.stdDev[c]
			density[i] += z * z / 2
		}
	}
	return density, nil
}

// acceptance is the mean probability to accept a proposal with this Beta; before is what beyond gives where it begins.
func (t *betaTrial) acceptance(ctx context.Context, beta float64, before []float64) (float64, error) {
	keep := math.Sqrt(1 - beta*beta)
	for i := range atOnce {
		row := t.proposal.RawRowView(i)
		floats.AddScaledTo(row, t.mean, beta, t.noise.RawRowView(i))
		floats.AddScaled(row, keep, t.from.RawRowView(i))
		floats.AddScaled(row, -keep, t.mean)
	}
	after, err := t.beyond(ctx, t.proposal)
	if err != nil {
		return 0, err
	}
	mean := 0.
	for i := range after {
		if ratio := math.Exp(after[i] - before[i]); ratio > 0 { // not NaN
			mean += min(1, ratio) / float64(atOnce)
		}
	}
	return mean, nil
}

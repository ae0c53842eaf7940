package diag

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"

	"gonum.org/v1/gonum/mat"
)

// The bounds of Mixing, well beyond those of Of: with 250 draws of each of 4 chains, chance alone does not come near.
const (
	mixedRHat        = 1.1
	mixedESSPerChain = 5
	mixedRows        = 32      // at most this many rows are predicted
	mixedNumbers     = 4 << 20 // and at most this many outputs of all particles: 32 MB
)

// Mixing are doubts, for Result.Doubts, if the chains of a posterior disagree on their predictions for the rows
// data, such as the training part; nil: rows that are drawn, normal with the training features' means and standard
// deviations. At up to 32 of these rows, evenly spaced (fewer if there are millions of particles), it computes R-hat
// and bulk ESS of the particles' predictions, see [OfPrediction]. It returns none if no R-hat is above 1.1 and no
// ESS is below 5 per chain, or if the particles are not from chains or a chain has fewer than 4 draws. No warning does
// not mean that the chains have converged: [Of] applies the usual, stricter bounds.
func Mixing(ctx context.Context, p *bayes.Posterior, data *dataset.Dataset) (all fit.Doubts) {
	if p == nil || p.Chains() == 0 || p.Particles()/p.Chains() < 4 || !equal(p.LogWeights().Weights()) {
		return nil
	}
	features := p.Bound().Inputs
	rows, kind := mixedRows, "drawn rows'"
	if data != nil {
		rows, kind = data.Rows(), "training rows'"
	}
	some := min(rows, mixedRows, max(1, mixedNumbers/(p.Particles()*p.Bound().Width)))
	at := mat.NewDense(some, features, nil)
	scale, rng := p.Origin().Features, rand.New(rand.NewPCG(1, 2))
	for i := range some {
		row := at.RawRowView(i)
		if data != nil {
			mat.Row(row, i*rows/some, data.X)
			continue
		}
		for f := range row {
			row[f] = scale.Mean[f] + scale.StdDev[f]*rng.NormFloat64()
		}
	}
	var summary Summary
	prediction, err := p.Predict(context.WithoutCancel(ctx), at)
	if err == nil {
		summary, err = OfPrediction(prediction)
	}
	if err != nil {
		all.If(true, "not judged", "whether the chains agree on predictions is not known: %v", err)
		return all
	}
	signs, _ := summary.signs(mixedRHat, float64(mixedESSPerChain*p.Chains()), kind+" predictions",
		func(r Row) float64 { return r.BulkESS })
	all.If(len(signs) > 0, "disagree", "%s disagree on predictions: %s: these are not yet draws of the posterior; take "+
		"more draws, a longer warm-up or another sampler", chainsOf(p.Chains()), strings.Join(signs, ", and "))
	return all
}

// signs says what is beyond the bounds, and in how many rows' R-hat; apart: an R-hat is.
func (s Summary) signs(most, least float64, what string, ess func(Row) float64) (signs []string, apart bool) {
	worst, above, smallest := 0., 0, math.Inf(1)
	for _, r := range s.Rows {
		if math.IsNaN(r.RHat) {
			continue // all draws are equal
		}
		if r.RHat > most {
			above++
		}
		worst, smallest = max(worst, r.RHat), min(smallest, ess(r))
	}
	if above > 0 {
		signs = append(signs, fmt.Sprintf("R-hat is up to %.2f, above %v for %d of %d %s", worst, most, above, len(s.Rows),
			what))
	}
	if smallest < least {
		signs = append(signs, fmt.Sprintf("the effective sample size is as small as %.0f of %d draws", smallest,
			s.Chains*s.Draws))
	}
	return signs, above > 0
}

func chainsOf(n int) string {
	if n == 1 {
		return "the two halves of the chain"
	}
	return fmt.Sprintf("the %d chains", n)
}

// The bounds of Agreement beside leastESSPerChain. Stan's bound of R-hat, 1.01, would warn by chance: of four right
// chains of 1000 draws with an ESS of 495 it was passed by 100 of 400 coordinates, and 1.05 by none.
const (
	agreedRHat = 1.05
	leastShare = .25 // of the draws
)

// Agreement are doubts, for Result.Doubts, if chains that sample a density disagree on one of its coordinates:
// if an R-hat is above 1.05, or a bulk or tail ESS below 100 a chain, as in Stan, or below a quarter of fewer draws. It
// names coordinates that never change, and returns none if a chain has fewer than 4 draws.
func Agreement(s Sample) (all fit.Doubts) {
	if s.Draws < minDraws {
		return nil
	}
	summary, err := OfSample(s)
	if err != nil {
		all.If(true, "not judged", "whether the chains agree is not known: %v", err)
		return all
	}
	if still := summary.still(); len(still) > 0 {
		all.If(true, "never change", "%d of %d coordinates never change, the first is %s: all draws of it are equal; if it "+
			"should move take a smaller step size, or give it another scale", len(still), len(summary.Rows), still[0])
	}
	least := min(float64(leastESSPerChain*s.Chains), leastShare*float64(s.Chains*s.Draws))
	signs, apart := summary.signs(agreedRHat, least, "coordinates",
		func(r Row) float64 { return min(r.BulkESS, r.TailESS) })
	text := strings.Join(signs, ", and ")
	all.If(apart, "disagree", "%s disagree: %s: these are not yet draws of the target; take more draws or a longer "+
		"warm-up, or other parameters, whose scales and tails are alike and which are not correlated",
		chainsOf(s.Chains), text)
	all.If(!apart && len(signs) > 0, "few effective", "%s: means, and quantiles in the tails more so, are uncertain; "+
		"take more draws", text)
	return all
}

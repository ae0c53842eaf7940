package diag

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/mat"
)

// The bounds of Mixing, well beyond those of Of: with 250 draws of each of 4 chains, chance alone does not come near.
const (
	mixedRHat        = 1.1
	mixedESSPerChain = 5
	mixedRows        = 32      // at most this many rows are predicted
	mixedNumbers     = 4 << 20 // and at most this many outputs of all particles: 32 MB
)

// Mixing returns warnings, for Result.Warnings, if the chains of a posterior disagree on their predictions for the rows
// data, such as the training part; nil: rows that are drawn, normal with the training features' means and standard
// deviations. At up to 32 of these rows, evenly spaced (fewer if there are millions of particles), it computes R-hat
// and bulk ESS of the particles' predictions, see [NewForPrediction]. It returns none if no R-hat is above 1.1 and no
// ESS is below 5 per chain, or if the particles are not from chains or a chain has fewer than 4 draws. No warning does
// not mean that the chains have converged: [Of] applies the usual, stricter bounds.
func Mixing(ctx context.Context, p *bayes.Posterior, data *dataset.Dataset) []string {
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
	scale, rng := p.Features(), rand.New(rand.NewPCG(1, 2))
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
	var chains *Chains
	prediction, err := p.Predict(context.WithoutCancel(ctx), at)
	if err == nil {
		chains, err = NewForPrediction(prediction)
	}
	if err != nil {
		return []string{fmt.Sprintf("whether the chains agree on predictions is not known: %v", err)}
	}
	summary := chains.Summary()
	worst, apart, least := 0., 0, math.Inf(1)
	for _, r := range summary.Rows {
		if math.IsNaN(r.RHat) {
			continue // all draws are equal
		}
		if r.RHat > mixedRHat {
			apart++
		}
		worst, least = max(worst, r.RHat), min(least, r.BulkESS)
	}
	var signs []string
	if worst > mixedRHat {
		signs = append(signs, fmt.Sprintf("R-hat is up to %.2f, above %.1f for %d of %d %s predictions", worst,
			mixedRHat, apart, len(summary.Rows), kind))
	}
	if least < float64(mixedESSPerChain*p.Chains()) {
		signs = append(signs, fmt.Sprintf("the effective sample size is as small as %.0f of %d draws", least, p.Particles()))
	}
	if len(signs) == 0 {
		return nil
	}
	chainsAre := fmt.Sprintf("the %d chains", p.Chains())
	if p.Chains() == 1 {
		chainsAre = "the two halves of the chain"
	}
	return []string{fmt.Sprintf("%s disagree on predictions: %s: these are not yet draws of the posterior; take more "+
		"draws, a longer warm-up or another sampler", chainsAre, strings.Join(signs, ", and "))}
}

//go:build long

package shards

import (
	"context"
	"math"
	"testing"

	"gobnn/bayes/mcmc/check"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Chains over shards have the mean and the variance that chains over all rows have: the tolerances are four standard
// errors of draws that remember 50 steps.
func TestShardsAreExactLong(t *testing.T) {
	data := line(140)
	l := check.Linear{Y: data.Y, NoiseStdDev: noiseStdDev * math.Sqrt(140./16)}
	for i := range data.Rows() {
		l.X = append(l.X, append(mat.Row(nil, i, data.X), 1))
	}
	mean, covariance, _ := l.Posterior()
	sampler, settings := overShards(t)
	sampler.StepSize = noiseStdDev / 4
	settings.Chains, settings.Draws, settings.WarmUp = 8, 4000, 400
	result, err := Fit(context.Background(), bayesianLine(), sampler, allLocal(t), settings)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range mean {
		var all []float64
		for _, chain := range result.Chains.Draws.Coordinate(i) {
			all = append(all, chain...)
		}
		sd := math.Sqrt(covariance.At(i, i))
		m, v := stat.MeanVariance(all, nil)
		t.Logf("coordinate %d: mean off by %.3f, variance by %.3f", i, (m-want)/sd, v/(sd*sd)-1)
		if math.Abs(m-want) > .16*sd || math.Abs(v/(sd*sd)-1) > .22 {
			t.Errorf("coordinate %d: mean %v, want %v; variance %v, want %v", i, m, want, v, sd*sd)
		}
	}
}

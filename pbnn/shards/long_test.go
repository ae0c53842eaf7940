//go:build long

package shards

import (
	"math"
	"testing"

	"gobnn/bayes/fit/fittest"

	"gonum.org/v1/gonum/stat"
)

// Chains over shards have the mean and the variance that chains over all rows have: the tolerances are four standard
// errors of draws that remember 50 steps.
func TestShardsAreExactLong(t *testing.T) {
	mean, covariance, _ := fittest.Exact(fittest.Data(140), noiseStdDev*math.Sqrt(140./20)).Posterior()
	sampler, settings := overShards(t)
	sampler.StepSize = noiseStdDev / 4
	sampler.Chains, sampler.Draws, sampler.WarmUp = 8, 4000, 400
	result, err := over(t, line, sampler, allLocal(t), settings)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range mean {
		var all []float64
		for _, chain := range result.chains.Draws.Coordinate(i) {
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

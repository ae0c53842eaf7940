//go:build long

package cluster_test

import (
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/cluster"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Islands of a fixed kernel have an evidence without bias. Over repetitions with ten particles on each of four islands,
// which are resampled in half of them, the means of Z over the exact one, and of Z times the error of each coordinate's
// mean, are 1 and 0 within four standard errors: a false alarm in four thousand calls.
func TestIslandsAreUnbiasedLong(t *testing.T) {
	const repetitions = 400
	mean, _, logZ := check.Line().Posterior()
	ratios, stated, met := make([]float64, repetitions), make([]float64, repetitions), 0
	weighted := make([][]float64, len(mean)) // Z times the error of a coordinate's mean
	for i := range ratios {
		result, err := meeting(t.Context(), t, t.TempDir(), run.Settings{Seed: uint64(i)})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fit.Details[[]cluster.Meeting](result) {
			if m.Resampled {
				met++
			}
		}
		e := result.Posterior.Evidence()
		ratios[i] = math.Exp(e.Value - logZ)
		stated[i] = ratios[i] * e.StdErr
		for k, d := range meanErrors(t, result.Posterior) {
			weighted[k] = append(weighted[k], ratios[i]*d)
		}
	}
	for k, values := range append(weighted, ratios) {
		want := 0.
		if k == len(mean) {
			want = 1
		}
		got, stdDev := stat.MeanStdDev(values, nil)
		stdErr := stdDev / math.Sqrt(repetitions)
		t.Logf("mean %d is %.4f +- %.4f, exact %v", k, got, stdErr, want)
		if math.Abs(got-want) > 4*stdErr {
			t.Errorf("mean %d is %.4f +- %.4f, exact %v", k, got, stdErr, want)
		}
	}
	t.Logf("Z over the exact one varies by %.3f, stated are %.3f", stat.StdDev(ratios, nil),
		floats.Norm(stated, 2)/math.Sqrt(repetitions))
	if met < repetitions/3 {
		t.Errorf("islands were resampled %d times in %d repetitions", met, repetitions)
	}
}

// meanErrors are the errors of the posterior means of line, in standard deviations.
func meanErrors(t *testing.T, p *bayes.Posterior) (all []float64) {
	t.Helper()
	mean, covariance, _ := check.Line().Posterior()
	for k, want := range mean {
		values, err := p.Coordinate(k)
		if err != nil {
			t.Fatal(err)
		}
		got := stat.Mean(values, p.LogWeights().Weights())
		all = append(all, (got-want)/math.Sqrt(covariance.At(k, k)))
	}
	return all
}

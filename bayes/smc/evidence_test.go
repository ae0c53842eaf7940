package smc

import (
	"math"
	"testing"

	"gobnn/bayes/compute/computetest"
)

// The mean of three weights, and its standard error sqrt(sample variance / 3) / mean, by hand; weights that are lost
// count as zeros; normalised weights say nothing of the data, so they have no method of their own for it.
func TestLogEvidence(t *testing.T) {
	value, stdErr := LogEvidence([]float64{math.Log(1) + 700, math.Log(2) + 700, math.Log(6) + 700})
	computetest.Near(t, "value", []float64{value}, []float64{math.Log(3) + 700}, 1e-14)
	computetest.Near(t, "standard error", []float64{stdErr}, []float64{math.Sqrt(7./3) / 3}, 1e-12)

	value, stdErr = LogEvidence([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1)})
	computetest.Near(t, "value", []float64{value}, []float64{math.Log(.25)}, 1e-14)
	computetest.Near(t, "standard error", []float64{stdErr}, []float64{1}, 1e-12) // sqrt(.25 / 4) / .25

	for _, none := range [][]float64{nil, {math.Inf(-1)}, {math.NaN(), math.Inf(-1)}} {
		if value, stdErr := LogEvidence(none); !math.IsInf(value, -1) || !math.IsNaN(stdErr) {
			t.Errorf("LogEvidence(%v) = %v +- %v, want -Inf +- NaN", none, value, stdErr)
		}
	}
	if value, stdErr := LogEvidence([]float64{-3}); value != -3 || !math.IsNaN(stdErr) {
		t.Errorf("one weight: %v +- %v, want -3 +- NaN", value, stdErr)
	}
}

// Where all potentials are 1 the evidence is known without error. After r multinomial resamplings two draws have
// different first ancestors with probability ((J-1)/J)^(r+1), which is then the mean of 1 - sum_i G_i^2, and the
// error must be 0. Half of that probability gives a relative variance of 1/2, whatever r. Without resampling it is
// that of a mean of J weights.
func TestGenealogyStdErr(t *testing.T) {
	for _, particles := range []int{3, 10} {
		for r := range 5 {
			different := math.Pow(float64(particles-1)/float64(particles), float64(r+1))
			computetest.Near(t, "without error", []float64{GenealogyStdErr(1-different, particles, r)}, []float64{0}, 3e-8)
			half := GenealogyStdErr(1-different/2, particles, r)
			computetest.Near(t, "half", []float64{half}, []float64{math.Sqrt(.5)}, 1e-12)
		}
	}
	raw := []float64{0, .3, -.4, .9}
	_, want := LogEvidence(raw)
	w, err := NewLogWeights(raw)
	if err != nil {
		t.Fatal(err)
	}
	computetest.Near(t, "no resampling", []float64{GenealogyStdErr(1/w.EffectiveSampleSize(), 4, 0)}, []float64{want}, 1e-12)
}

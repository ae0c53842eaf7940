package smc

import (
	"math"
	"testing"

	"gobnn/bayes"
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
func TestGenealogy(t *testing.T) {
	run := func(squares []float64) (g Genealogy) {
		for i, s := range squares {
			g.Add(Weighed{families: s, resampled: i < len(squares)-1})
		}
		return g
	}
	for _, particles := range []int{3, 10} {
		for r := range 5 {
			different := math.Pow(float64(particles-1)/float64(particles), float64(r+1))
			squares := make([]float64, r+1)
			squares[r] = 1 - different
			none := run(squares).StdErr(Multinomial, particles)
			squares[r] = 1 - different/2
			half := run(squares).StdErr(Multinomial, particles)
			computetest.Near(t, "without error, half", []float64{none, half}, []float64{0, math.Sqrt(.5)}, 3e-8)
			if got := run(squares).StdErr(Stratified, particles); math.IsNaN(got) != (r > 0) {
				t.Errorf("stratified: a standard error of %v after %d resamplings", got, r)
			}
		}
	}
	raw := []float64{0, .3, -.4, .9}
	_, want := LogEvidence(raw)
	w, err := bayes.NewLogWeights(raw)
	if err != nil {
		t.Fatal(err)
	}
	g := run([]float64{1 / w.EffectiveSampleSize()})
	computetest.Near(t, "no resampling", []float64{g.StdErr(Stratified, 4)}, []float64{want}, 1e-12)

	// One family is left: of it all that is known is what independent particles would have.
	g = Genealogy{}
	for _, variance := range []float64{.01, .02, .06} {
		g.Add(Weighed{families: 1. / 100, variance: variance, resampled: variance < .06})
	}
	computetest.Near(t, "few families", []float64{g.StdErr(Multinomial, 100)}, []float64{.3}, 1e-12)
}

// Of three weighings by hand: the bridges of the first two steps lie above the mean weights by (.5 - 1 + .8) and
// (-.2 - -.5 + -.1), .5 in all; the last step's bridge is not known. What is noise is not missing.
func TestDrift(t *testing.T) {
	var d drift
	for _, w := range []Weighed{
		{step: .1, Increment: 1, ahead: .5, behind: 7, joint: .001, alone: 9}, // nothing is behind the first
		{step: .4, Increment: -.5, ahead: -.2, behind: -.8, joint: .002, alone: 8},
		{step: .5, Increment: 3, ahead: 4, behind: .1, joint: 7, alone: .006},
	} {
		d.add(w)
	}
	computetest.Near(t, "drift", []float64{d.Sum, d.Variance + d.Alone, d.Step}, []float64{.5, .009, .5}, 1e-12)
	computetest.Near(t, "missing", []float64{d.missing()}, []float64{math.Sqrt(.25 - .009)}, 1e-12)
	m := &machine{Tempered: Tempered{Particles: 100}, position: position{LogEvidence: -7, Drift: d}}
	m.Genealogy = Genealogy{Since: .04}
	e := m.evidence()
	computetest.Near(t, "the run's evidence, with what is missing in its error", []float64{e.Value, e.StdErr},
		[]float64{-7, math.Sqrt(.04 + .25 - .009)}, 1e-12)
	if d.Alone = .025; d.missing() != 0 { // 3 standard deviations are .504
		t.Errorf("%v is missing where all is noise", d.missing())
	}
}

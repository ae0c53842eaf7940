package pmcnet_test

import (
	"math"
	"testing"

	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/run"
	"gobnn/pmcnet"
)

// The log evidence of an iteration is shown, as a curve and as a score of Progress, where its k-hat is at most .7, and
// only there: proposals that begin too narrow come to such a k-hat, and lose it again.
func TestStatedEvidence(t *testing.T) {
	settings := goSettings(t)
	scores := map[int]float64{} // by iteration; Progress is not called after each
	settings.Progress = func(p run.Progress) {
		if p.Step > 0 {
			scores[p.Step] = p.Score("log evidence")
		}
	}
	a := pmcnet.PMC{Proposals: 10, Draws: 100, Iterations: 8, StdDev: .1}
	r, d := fittest.Sample[*pmcnet.Details](t, fittest.Density(check.Line()), a, settings)
	curve := r.Curve(pmcnet.LogEvidenceCurve)
	shown := 0
	for i, it := range d.Trace {
		want := math.NaN()
		if it.KHat <= pmcnet.MaxKHat {
			want = it.LogEvidence
			shown++
		}
		if math.IsNaN(it.LogEvidence) || !same(curve.Values[i], want) {
			t.Errorf("iteration %d: k-hat %.2f, log evidence %v, on the curve %v", i+1, it.KHat, it.LogEvidence, curve.Values[i])
		}
		if score, ok := scores[i+1]; ok && !same(score, want) {
			t.Errorf("iteration %d: k-hat %.2f, log evidence %v, score %v", i+1, it.KHat, it.LogEvidence, score)
		}
	}
	if _, last := scores[8]; shown == 0 || shown == 8 || !last || len(curve.Values) != 8 {
		t.Errorf("k-hat is at most .7 in %d of 8 iterations, scores %v", shown, scores)
	}
}

// same says whether two numbers are the same, or both NaN.
func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// The share of distinct draws and lambda are among the posterior's diagnostics.
func TestSharesAndLambda(t *testing.T) {
	model, parts, _ := fittest.Harness()
	r, details := fittest.Fit[*pmcnet.Details](t, model, pmcnet.PMC{
		Proposals: 30, Draws: 10, Iterations: 1, StdDev: .05, Start: pmcnet.FromPrior,
		Resampling: pmcnet.GlocalEvery(1), Weights: pmcnet.Tempered,
	}, parts, goSettings(t))
	d, last := r.Posterior.Diagnostics(), details.Trace[0]
	if !(last.Distinct < 1 && last.Distinct >= 1./30) || d["share of distinct draws"] != last.Distinct {
		t.Errorf("share of distinct draws %v, diagnostics %v", last.Distinct, d)
	}
	if !(last.Exponent < 1) || d["lambda"] != last.Exponent {
		t.Errorf("lambda %v, diagnostics %v", last.Exponent, d)
	}
}

package diag_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/diag"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// resultOf is a result of a posterior of a linear model with 2 stochastic weights: flat [J, 2].
func resultOf(t *testing.T, phi, logWeights []float64, chains int, stored map[string]float64) *bayes.Result {
	t.Helper()
	bound, err := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{}, Stochastic: bayes.Weights(1)}.Bind(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := bayes.NewPosterior(bound, bayes.Draws{
		Phi: compute.Floats(compute.Float64, phi, len(logWeights), 2), Psi: compute.Floats(compute.Float64, []float64{0}, 1),
		LogWeights: logWeights, Chains: chains, Diagnostics: stored,
	}, bayes.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	return &bayes.Result{Posterior: p, Status: run.Completed}
}

func normals(rng *rand.Rand, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = rng.NormFloat64()
	}
	return all
}

// Of says of chains what Summary says of their worst parameters, of weights what PSIS says, and of neither nothing.
func TestOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const chains, draws = 4, 250
	phi := normals(rng, 2*chains*draws)
	r := resultOf(t, phi, bayes.EqualLogWeights(chains*draws), chains, map[string]float64{"divergences": 3})
	r.Warnings = []string{"of the run"}
	d, err := diag.Of(r)
	if err != nil {
		t.Fatal(err)
	}
	by, err := diag.NewForPosterior(r.Posterior)
	if err != nil {
		t.Fatal(err)
	}
	rows := by.Summary().Rows
	if want := max(rows[0].RHat, rows[1].RHat); d.RHat != want || d.ESS != min(rows[0].BulkESS, rows[1].BulkESS) ||
		!math.IsNaN(d.KHat) {
		t.Errorf("R-hat %v, ESS %v, k-hat %v of %+v", d.RHat, d.ESS, d.KHat, rows)
	}
	if len(d.Warnings) != 1 || !strings.HasPrefix(d.String(), "4 chains of 250 draws, ESS ") ||
		!strings.Contains(d.String(), "divergences 3\n  of the run") {
		t.Errorf("says\n%s", d)
	}

	for j := range draws { // one chain elsewhere, in the second weight
		phi[2*j+1] += 5
	}
	r = resultOf(t, phi, bayes.EqualLogWeights(chains*draws), chains, nil)
	r.Status = run.Cancelled
	if d, err = diag.Of(r); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(d.Warnings, "\n"); len(d.Warnings) != 3 || !strings.Contains(all, "cancelled") ||
		!strings.Contains(all, "R-hat of layer1/weights[0,1]") || !strings.Contains(all,
		"effective sample size of layer1/weights[0,1]") {
		t.Errorf("warns\n%s", all)
	}

	heavy := make([]float64, 1000) // weights u^-1: k = 1
	for j := range heavy {
		heavy[j] = -math.Log(rng.Float64())
	}
	r = resultOf(t, normals(rng, 2000), heavy, 0, nil)
	if d, err = diag.Of(r); err != nil {
		t.Fatal(err)
	}
	k, err := diag.KHat(heavy)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(d.KHat-k) > 1e-9 || d.KHat < .7 || d.ESS != r.Posterior.LogWeights().EffectiveSampleSize() ||
		len(d.Warnings) != 1 || d.Chains != 0 {
		t.Errorf("k-hat %v, want %v; %+v", d.KHat, k, d)
	}

	d, err = diag.Of(resultOf(t, normals(rng, 20), bayes.EqualLogWeights(10), 0, nil))
	if err != nil || d.String() != "10 particles" {
		t.Errorf("equal particles of no chains: %v, %q", err, d)
	}
	if _, err := diag.Of(&bayes.Result{}); err == nil {
		t.Error("no posterior: no error")
	}
}

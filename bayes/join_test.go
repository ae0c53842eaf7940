package bayes_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"
)

// Joined runs weigh by their evidence, chains count alike; what does not go together is refused.
func TestJoin(t *testing.T) {
	model := bayes.Model{Network: nn.MLP{Hidden: []int{2}}, Likelihood: bayes.Gaussian{StdDev: 1},
		Stochastic: bayes.All()}
	make1 := func(model bayes.Model, particles int, chains int, logZ float64, seed uint64) *bayes.Posterior {
		bound := computetest.Must(model.Bind(features, 1))
		draws := bayes.Draws{Phi: compute.Floats(compute.Float32, slices.Repeat([]float64{float64(seed)}, particles*bound.D),
			particles, bound.D), LogWeights: bayes.EqualLogWeights(particles), Chains: chains,
			Evidence: bayes.Evidence{Value: logZ, StdErr: .1}}
		if bound.W > 0 {
			draws.Psi = compute.Floats(compute.Float32, slices.Repeat([]float64{float64(seed)}, bound.W), bound.W)
		}
		return remade(t, bound, draws, bayes.Origin{Provenance: bayes.Provenance{Seed: seed, DataHash: "d"}})
	}
	unknown := math.NaN()

	a, b := make1(model, 2, 0, -10, 1), make1(model, 3, 0, -10+math.Log(3), 2)
	joined, err := bayes.Join(a, b)
	if err != nil {
		t.Fatal(err)
	}
	// Z is 1 and 3 times e^-10: shares 1/4 and 3/4, mean 2 e^-10, deviations of half the mean, 1.6 islands.
	weights := joined.LogWeights().Weights()
	for j, want := range []float64{.125, .125, .25, .25, .25} {
		if math.Abs(weights[j]-want) > 1e-12 {
			t.Errorf("weight %d is %v, want %v", j, weights[j], want)
		}
	}
	noted, err := bayes.Join(a, b.WithDoubts("cancelled", []string{"few"}))
	if from := noted.Provenance(); err != nil || fmt.Sprint(from.Warnings) != "[run 2: few]" ||
		from.Status != "some runs: cancelled" {
		t.Errorf("of a run that was cancelled: %v, %+v", err, from)
	}
	e := joined.Evidence()
	if math.Abs(e.Value-(-10+math.Log(2))) > 1e-12 || math.Abs(e.StdErr-.5) > 1e-12 ||
		math.Abs(joined.Diagnostics()[bayes.IslandsESS]-1.6) > 1e-12 {
		t.Errorf("evidence %v, diagnostics %v; want -10 + log 2, .5 and 1.6 islands", e, joined.Diagnostics())
	}
	first, err := joined.Coordinate(0)
	if err != nil || fmt.Sprint(first) != "[1 1 2 2 2]" {
		t.Errorf("coordinate 0 is %v (%v)", first, err)
	}

	chains, err := bayes.Join(make1(model, 4, 2, unknown, 1), make1(model, 2, 1, unknown, 2))
	if err != nil || chains.Chains() != 3 || chains.LogWeights().EffectiveSampleSize() < 5.99 ||
		chains.Evidence().Known() {
		t.Errorf("chains: %v, %+v", err, chains)
	}

	shared := model
	shared.Stochastic = bayes.Layers(1)
	other := model
	other.Network = nn.MLP{Hidden: []int{3}}
	for _, c := range []struct {
		runs []*bayes.Posterior
		says string
	}{
		{nil, "needs posteriors"},
		{[]*bayes.Posterior{a, nil}, "needs posteriors"},
		{[]*bayes.Posterior{a, make1(other, 2, 0, -10, 2)}, "its model is another"},
		{[]*bayes.Posterior{a, make1(model, 2, 0, -10, 1)}, "both have seed 1"},
		{[]*bayes.Posterior{a, make1(model, 2, 0, unknown, 2)}, "its evidence is unknown"},
		{[]*bayes.Posterior{a, make1(model, 2, 1, -10, 2)}, "chains must have one length"},
		{[]*bayes.Posterior{make1(model, 4, 2, unknown, 1), make1(model, 4, 1, unknown, 2)}, "chains must have one length"},
		{[]*bayes.Posterior{make1(shared, 2, 0, unknown, 1), make1(shared, 2, 0, unknown, 2)}, "shared parameters"},
	} {
		if _, err := bayes.Join(c.runs...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v, want %q", err, c.says)
		}
	}
}

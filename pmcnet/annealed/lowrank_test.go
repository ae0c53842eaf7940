package annealed_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/pmcnet/annealed"
)

// With low rank + diagonal components, which are taken where particles are fewer than four a dimension, the bridge's
// evidence is the exact one on a regression in 36 dimensions, and so is the result's: over 3 seeds the squared errors,
// in standard errors, sum to less than 21.1, a false alarm of 1e-4.
func TestAnnealedLowRank(t *testing.T) {
	l := regression(36, 60, 2)
	_, _, want := l.Posterior()
	posed := problem(l)
	settings := run.Settings{Engine: computetest.Go(t), DType: compute.Float64}
	a := annealed.Annealed{
		SMC: smc.Tempered{Kernel: short, Particles: 140}, Draws: 1000, Components: 1, Bridge: annealed.BridgeAlways,
	}
	byBridge, results := 0., 0.
	for seed := range uint64(3) {
		settings.Seed = seed
		r, err := sampled(t.Context(), posed, a, settings)
		if err != nil {
			t.Fatal(err)
		}
		said := estimates(r)
		e := said.BridgeEvidence
		byBridge += math.Pow((e.Value-want)/e.StdErr, 2)
		results += math.Pow((r.Evidence.Value-want)/r.Evidence.StdErr, 2)
		t.Logf("bridge %.4f +- %.4f, importance %.4f +- %.4f, k-hat %.2f, by %s", e.Value-want, e.StdErr,
			said.ImportanceEvidence.Value-want, said.ImportanceEvidence.StdErr, said.KHat, said.Source)
		if !(e.StdErr < .2) || rms(t, r, l) > .4 {
			t.Errorf("seed %d: bridge %+v, rms %.2f", seed, e, rms(t, r, l))
		}
	}
	if byBridge > 21.1 || results > 21.1 {
		t.Errorf("over 3 seeds the squared errors sum to %.1f (bridge) and %.1f (result) squared standard errors", byBridge,
			results)
	}
}

// Where a network has so many units that hardly a draw of the mixture is in canonical order, the particles stay as they
// are, the result says so, and its evidence is that of the SMC within the errors of both.
func TestAnnealedManyUnits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	model := waveModel(nn.Tanh)
	model.Network = nn.MLP{Hidden: []int{16}, Activation: nn.Tanh}
	model.Prior = bayes.Normal{StdDev: .3}
	settings := goSettings(t)
	a := annealed.Annealed{SMC: smc.Tempered{Kernel: short, Particles: 400}, Draws: 1000}
	r, err := fitted(t.Context(), model, a, wave(), settings)
	if err != nil {
		t.Fatal(err)
	}
	said := estimates(r)
	t.Logf("SMC %+v, bridge %+v, k-hat %.2f, by %s, order %q, %v", said.SMCEvidence, said.BridgeEvidence, said.KHat,
		said.Source, said.Order, r.Elapsed)
	if !strings.Contains(said.Order, "in canonical order") || said.LogImages != 0 {
		t.Errorf("order %q, log |G| %v", said.Order, said.LogImages)
	}
	a2, b := said.SMCEvidence, said.BridgeEvidence
	if !b.Known() || math.Abs(a2.Value-b.Value) > 4*math.Hypot(a2.StdErr, b.StdErr) || !(b.StdErr < .3) {
		t.Errorf("SMC %+v, bridge %+v: %s", a2, b, said.Why)
	}
}

package annealed

import (
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
)

// With low rank + diagonal components, which are taken where particles are fewer than four a dimension, the bridge's
// evidence is the exact one on a regression in 36 dimensions, and so is the result's: over 3 seeds the squared errors,
// in standard errors, sum to less than 21.1, a false alarm of 1e-4.
func TestAnnealedLowRank(t *testing.T) {
	l := fittest.Regression(36, 60, 2)
	_, _, want := l.Posterior()
	settings := run.Settings{Engine: computetest.Go(t), DType: compute.Float64}
	a := Annealed{
		SMC: smc.Tempered{Kernel: short, Particles: 140}, Draws: 1000, Components: 1, Bridge: BridgeAlways,
	}
	byBridge, results := 0., 0.
	for seed := range uint64(3) {
		settings.Seed = seed
		r, d := fittest.Sample[*Details](t, fittest.Density(l), a, settings)
		e := d.BridgeEvidence
		byBridge += math.Pow((e.Value-want)/e.StdErr, 2)
		results += math.Pow((r.Draws.Evidence.Value-want)/r.Draws.Evidence.StdErr, 2)
		if off := fittest.OffMean(t, r.Draws, l); !(e.StdErr < .2) || off > .4 {
			t.Errorf("seed %d: bridge %+v, the mean is off by %.2f", seed, e, off)
		}
	}
	if byBridge > 21.1 || results > 21.1 {
		t.Errorf("over 3 seeds the squared errors sum to %.1f (bridge) and %.1f (result) squared standard errors", byBridge,
			results)
	}
}

// Where a network has so many units that hardly a draw of the mixture is in canonical order, the particles stay as they
// are, and the evidence is that of the SMC within the errors of both.
func TestAnnealedManyUnits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	model := waveModel(nn.Tanh)
	model.Network = nn.MLP{Hidden: []int{16}, Activation: nn.Tanh}
	model.Prior = bayes.Normal{StdDev: .3}
	settings := goSettings(t)
	a := Annealed{SMC: smc.Tempered{Kernel: short, Particles: 400}, Draws: 1000}
	_, d := fittest.Fit[*Details](t, model, a, wave(), settings)
	e, b := d.SMCEvidence, d.BridgeEvidence
	if !b.Known() || math.Abs(e.Value-b.Value) > 4*math.Hypot(e.StdErr, b.StdErr) || !(b.StdErr < .3) {
		t.Errorf("SMC %+v, bridge %+v: %s", e, b, d.why)
	}
}

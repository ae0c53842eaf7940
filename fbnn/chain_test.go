package fbnn

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// A chain of pCN on the true posterior has the regression's means: of 4000 draws some 600 are effective, so that .25 is
// six of their errors. Its potentials are those of the likelihood by hand, and a linear emulator's are the same.
func TestChain(t *testing.T) {
	model, parts, l := regression()
	settings := run.Settings{Engine: computetest.Go(t), DType: compute.Float64, Seed: 3}
	c := Chain{Kernel: mcmc.PreconditionedCrankNicolson{}, Draws: 4000, Thin: 3, WarmUp: 200}
	r := fitted(t, model, c, parts, settings)
	for i, e := range off(t, r, l) {
		if !(math.Abs(e) < .25) {
			t.Errorf("the mean of coordinate %d is off by %.3f standard deviations", i, e)
		}
	}
	if r.Truth.minESS < 100 || r.Posterior.Chains() != 1 || r.Calibration != r.Sampling {
		t.Errorf("least ESS %v of %d chains", r.Truth.minESS, r.Posterior.Chains())
	}
	// 4000 draws of 3 transitions and 200 of warm-up, and what finds the step; no gradients but the climb's.
	if e := r.Evaluations; e.Full < 12_200 || e.Full > 13_500 || e.Partial != 0 || e.FullGradients > 300 {
		t.Errorf("%+v", e)
	}
	emulated := fitted(t, model, quick(CES{Uncorrected: true, Draws: 100}), parts, settings)
	theta := mat.NewDense(2, 4, []float64{1, -.5, .2, .3, -.3, .1, 0, 1})
	for _, result := range []*found{r, emulated} {
		truth, said, err := result.Potentials(t.Context(), theta)
		if err != nil {
			t.Fatal(err)
		}
		for j := range 2 {
			want := 0.
			for i, x := range l.X {
				f := 0.
				for k, v := range x {
					f += v * theta.At(j, k)
				}
				want += math.Pow((l.Y[i]-f)/l.NoiseStdDev, 2)/2 + math.Log(l.NoiseStdDev*math.Sqrt(2*math.Pi))
			}
			if math.Abs(truth[j]-want) > 1e-6 {
				t.Errorf("Phi is %v, want %v", truth[j], want)
			}
			if result == emulated && math.Abs(said[j]-want) > 1e-4*want {
				t.Errorf("the emulated Phi is %v, want %v", said[j], want)
			}
		}
		if (said == nil) != (result == r) {
			t.Errorf("emulated %v", said)
		}
	}
	if mean := r.Truth.True; math.Abs(mean-r.Truth.Calibration) > 0 || mean > r.Truth.Prior {
		t.Errorf("Phi is %v, over the prior %v", mean, r.Truth.Prior)
	}
	if _, _, err := r.Potentials(t.Context(), mat.NewDense(1, 3, nil)); err == nil ||
		!strings.Contains(err.Error(), "theta is [1, 3]") {
		t.Errorf("theta of another dimension: %v", err)
	}
	// SGHMC of the emulated posterior takes an emulated gradient in each move.
	sghmc := fitted(t, model,
		quick(CES{Uncorrected: true, Sampling: mcmc.SGHMC{}, Draws: 50}), parts, settings)
	if e := sghmc.Evaluations; e.PartialGradients != 50 {
		t.Errorf("%+v, want 50 emulated gradients", e)
	}
	// Draws of the prior are N(0, 1): 5000 have means within five of their errors of 0.
	prior := fitted(t, model, Prior{Draws: 5000}, parts, settings)
	drawn, err := compute.Float64s(prior.Draws.Phi)
	if err != nil {
		t.Fatal(err)
	}
	if mean, sd := stat.MeanStdDev(drawn, nil); math.Abs(mean) > .036 || math.Abs(sd-1) > .03 ||
		math.Abs(prior.Truth.Prior/r.Truth.Prior-1) > .5 || prior.Truth.True < r.Truth.True {
		t.Errorf("mean %v and standard deviation %v, %+v", mean, sd, prior.Truth)
	}
	few := Chain{Draws: 5}
	if _, err := fit.Fit(t.Context(), model, few, parts, settings); err == nil || !strings.Contains(err.Error(), "is 5") {
		t.Errorf("five draws: %v", err)
	}
}

// In the paper's mode the pairs are the first draws of the calibration, one a transition; by default every tenth after
// a warm-up. What is set holds in both.
func TestPaperCalibration(t *testing.T) {
	model, parts, _ := regression()
	for _, c := range []struct {
		paper, set    bool
		warmUp, moves int
	}{{false, false, 1000, 200}, {true, false, 0, 20}, {true, true, 30, 60}} {
		a := CES{PaperMode: c.paper, Pairs: 20, Draws: 20, Regressor: linear{}}
		if c.set {
			a.PairsWarmUp, a.PairsThin = 30, 3
		}
		r := fitted(t, model, a, parts, run.Settings{Engine: computetest.Go(t), Seed: 3})
		if d := r.Calibration; d.WarmUpMoves != c.warmUp || d.Moves != c.moves {
			t.Errorf("%+v: %d transitions after a warm-up of %d", c, d.Moves, d.WarmUpMoves)
		}
	}
}

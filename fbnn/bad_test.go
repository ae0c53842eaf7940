package fbnn

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
)

// constant predicts the same number whatever theta is.
type constant struct{ NaN bool }

func (c constant) prepare() (Regressor, error) { return c, nil }
func (c constant) learn(_ context.Context, l *lesson) (*predictor, error) {
	_, rank := l.scores.Dims()
	value := 0.
	if c.NaN {
		value = math.NaN()
	}
	return &predictor{predict: func(_ compute.Nodes, theta *graph.Node) *graph.Node {
		zero := graph.MulScalar(graph.Slice(theta, graph.AxisRange(), graph.AxisRange(0, 1)), 0)
		return graph.AddScalar(graph.BroadcastToDims(zero, theta.Shape().Dim(0), rank), value)
	}}, nil
}

// quick are settings of a short run.
func quick(a CES) CES {
	a.PairsThin, a.PairsWarmUp = max(a.PairsThin, 1), 20
	if a.Pairs == 0 {
		a.Pairs = 50
	}
	if a.Regressor == nil {
		a.Regressor = linear{}
	}
	return a
}

// Settings and inputs that cannot work are refused, with what is wrong and what to do.
func TestBadInput(t *testing.T) {
	model, parts, _ := regression()
	for name, c := range map[string]struct {
		a    CES
		is   error
		says []string
	}{
		"few pairs": {a: CES{Pairs: 9}, says: []string{"fbnn: CES.Pairs is 9", "at least 10"}},
		"beta of the sampling": {
			a:    CES{Sampling: mcmc.PreconditionedCrankNicolson{Beta: 1.5}},
			says: []string{"fbnn: CES.Sampling", "Beta is 1.5", "at most 1"},
		},
		"all alike": {
			a:  CES{Calibration: mcmc.PreconditionedCrankNicolson{Beta: 1e-12}},
			is: errPairs, says: []string{"the first 40 of 50 are all alike", "CES.PairsThin"},
		},
		"NaN": {
			a: CES{Regressor: constant{NaN: true}}, is: ErrEmulator,
			says: []string{"not finite at 10 of 10 held-out pairs", "CES.Regressor"},
		},
		"never accepted": {
			a: CES{
				Regressor: constant{}, Sampling: mcmc.RandomWalkMetropolis{StepSize: 3}, Draws: 2000,
			},
			is: mcmc.ErrStuck, says: []string{"fbnn: sampling", "accepted", "the target refused all ends", "log-ratio"},
		},
		"SGHMC is not corrected": {
			a: CES{Sampling: mcmc.SGHMC{}}, says: []string{"CES.Sampling", "CES.Uncorrected", "mcmc.SGHMC", "mcmc.HMC"},
		},
		"what":         {a: CES{Emulates: "gradient"}, says: []string{`CES.Emulates is gradient`, "log-likelihood"}},
		"paper's mode": {a: CES{Emulates: LogLikelihood, PaperMode: true}, says: []string{"CES.PaperMode"}},
		"layer": {
			a: CES{Regressor: Network{Hidden: []int{3, 0}}}, says: []string{"Network.Hidden is [3 0]", "at least 1 unit"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fit.Fit(t.Context(), model, quick(c.a), parts, run.Settings{Engine: computetest.Go(t)})
			if c.is != nil && !errors.Is(err, c.is) {
				t.Fatalf("error %v, want %v", err, c.is)
			}
			fittest.Refused(t, name, err, c.says...)
		})
	}
}

// An emulator that knows nothing has the chain sample the prior: the result says so, and what the numbers are.
func TestSamplesThePrior(t *testing.T) {
	model, parts, _ := regression()
	a := quick(CES{
		Regressor: constant{}, Uncorrected: true, Sampling: mcmc.RandomWalkMetropolis{StepSize: .5}, Draws: 400,
	})
	r := fitted(t, model, a, parts, run.Settings{Engine: computetest.Go(t)})
	if !(r.Truth.True > .5*r.Truth.Prior && r.Truth.RMS > 3) {
		t.Errorf("%+v", r.Truth)
	}
	says(t, r, "the chain samples the prior, where Phi is")
}

// Draws that the true posterior has accepted are right where they are far from the pairs too, as of a calibration that
// has seen only the mode: the warning is of the pairs, and does not say that the emulator is wrong.
func TestNarrowPairs(t *testing.T) {
	model, parts, _ := regression()
	a := quick(CES{Calibration: mcmc.SGHMC{LearningRate: 1e-7}, Draws: 2000, Chains: 4})
	r := fitted(t, model, a, parts, run.Settings{Engine: computetest.Go(t)})
	says(t, r, "so the pairs are from too small a part of it")
	for _, w := range r.Warnings {
		if strings.Contains(w, "Uncorrected") || strings.Contains(w, "samples the prior") {
			t.Errorf("of exact draws: %s", w)
		}
	}
}

// chosen is a fault unless the posterior's provenance has the value that the run has chosen.
func chosen(t *testing.T, r *found, what string, want float64) {
	t.Helper()
	var settings struct{ Chosen map[string]float64 }
	err := json.Unmarshal(r.Posterior.Provenance().Settings, &settings)
	if got, there := settings.Chosen[what]; err != nil || !there || got != want {
		t.Errorf("the provenance has the %s %v, %t, not %v: %v", what, got, there, want, err)
	}
}

// Steps that are too short for the posterior leave the chain where it is, and the result says so. Its halves disagree.
func TestStandsStill(t *testing.T) {
	model, parts, _ := regression()
	a := quick(CES{Sampling: mcmc.PreconditionedCrankNicolson{Beta: 1e-4}, Draws: 200})
	r := fitted(t, model, a, parts, run.Settings{Engine: computetest.Go(t)})
	says(t, r, "the chain hardly moves", "disagree on predictions")
	// A longer step than the true chain's is cut to that.
	a.Sampling = mcmc.PreconditionedCrankNicolson{Beta: 1}
	r = fitted(t, model, a, parts, run.Settings{Engine: computetest.Go(t)})
	says(t, r, "CES.Sampling.Beta is 1, but the true chain needs")
	if r.Beta != r.trueBeta || r.Beta > .5 {
		t.Errorf("beta %v, of the true chain %v", r.Beta, r.trueBeta)
	}
	chosen(t, r, "sampling_beta", r.Beta)
	if acceptance := r.Sampling.Stats[0].Acceptance; math.Abs(acceptance-.3) > .12 {
		t.Errorf("the true chain accepts %.3f of its proposals, not .3", acceptance)
	}
	// Of an HMC whose steps are too long for its correction the error says what chooses shorter ones.
	a = quick(CES{Sampling: mcmc.HMC{StepSize: 50, Steps: 3}, Draws: 200})
	_, err := fit.Fit(t.Context(), model, a, parts, run.Settings{Engine: computetest.Go(t)})
	if cure := "the steps of CES.Sampling are 50: with a StepSize of 0"; !errors.Is(err, mcmc.ErrStuck) ||
		!strings.Contains(err.Error(), cure) {
		t.Errorf("steps of 50: %v", err)
	}
	a.Sampling = mcmc.HMC{Steps: 3}
	r = fitted(t, model, a, parts, run.Settings{Engine: computetest.Go(t)})
	if acceptance := r.Sampling.Stats[0].Acceptance; !(r.stepSize > 0 && r.stepSize < 1 && acceptance > .1) {
		t.Errorf("the chosen step size %v is accepted with %v", r.stepSize, acceptance)
	}
	chosen(t, r, "sampling_step_size", r.stepSize)
	// Of each step size that was tried, trajectories from 50 places evaluate the emulator's gradient at both ends and
	// between, 4 times in all; its log-density is evaluated at their start, and in the check.
	gradients := r.Evaluations.PartialGradients - r.Sampling.Evaluations.PartialGradients
	densities := r.Evaluations.Partial - r.Sampling.Evaluations.Partial - 50 - r.Truth.states
	if densities != 0 || gradients < 200 || gradients%200 != 0 {
		t.Errorf("the choice of the step size took %d gradients and %d log-densities of the emulator", gradients, densities)
	}
}

// Where the data say nothing the posterior is the prior, and a pCN whose every proposal is a draw from it is accepted.
func TestBetaOfThePrior(t *testing.T) {
	model, parts, _ := regression()
	model.Likelihood = bayes.Gaussian{StdDev: 1000}
	r := fitted(t, model, quick(CES{Draws: 100}), parts, run.Settings{Engine: computetest.Go(t)})
	if r.trueBeta < .99 || r.Sampling.Stats[0].Acceptance < .95 {
		t.Errorf("beta %v, accepted with %v", r.trueBeta, r.Sampling.Stats[0].Acceptance)
	}
}

func says(t *testing.T, r *found, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, text) }) {
			t.Errorf("no warning of %q says %q", r.Warnings, text)
		}
	}
}

// A run that is cancelled in any of its steps goes on from its files to the same bits, here of rows in blocks.
func TestResume(t *testing.T) {
	model, parts, _ := regression()
	ReadAtOnce(t, 11)
	parts = dataset.Parts{Source: dataset.RowsOf(parts.Train)}
	a := quick(CES{
		Regressor: Network{Hidden: []int{4}, Activations: []nn.Activation{nn.ReLU, nn.Tanh}, Epochs: 20}, Draws: 50,
	})
	a.BatchSize = 7
	settings := run.Settings{Engine: computetest.Go(t), Seed: 7}
	want := fitted(t, model, a, parts, settings)
	settings.Checkpoint, settings.CheckpointEvery = filepath.Join(t.TempDir(), "run"), 1
	var got *fit.Result
	for _, step := range []string{"calibration", "emulation", "sampling", "none"} {
		ctx, cancel := context.WithCancel(t.Context())
		settings.Progress = func(p run.Progress) {
			if strings.HasPrefix(p.Stage, step) {
				cancel()
			}
		}
		var err error
		got, err = fit.Fit(ctx, model, a, parts, settings)
		cancel()
		switch {
		case step == "none" && err != nil:
			t.Fatal(err)
		case step != "none" && err == nil && got.Status != run.Cancelled:
			t.Fatalf("cancelled in the %s: %v", step, got.Status)
		case err != nil && !errors.Is(err, context.Canceled):
			t.Fatalf("cancelled in the %s: %v", step, err)
		}
	}
	if !want.Draws.Phi.Equal(got.Draws.Phi) {
		t.Error("the draws of a resumed run differ")
	}
	if d := fit.Details[*Details](got); d.HeldOut != want.HeldOut || d.Truth != want.Truth {
		t.Errorf("%+v, %+v; want %+v, %+v", d.HeldOut, d.Truth, want.HeldOut, want.Truth)
	}
	settings.Seed = 8
	if _, err := fit.Fit(t.Context(), model, a, parts, settings); !errors.Is(err, run.ErrOtherRun) {
		t.Errorf("another seed: %v", err)
	}
	if files, err := os.ReadDir(filepath.Dir(settings.Checkpoint)); err != nil || len(files) != 4 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

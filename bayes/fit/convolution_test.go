package fit_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/fbnn"
	"gobnn/ohsmc"
	"gobnn/pbnn"
	"gobnn/pmcnet"
)

// A convolution of a single pixel is a dense layer of its channels, with the parameters in the same order: in every
// package both networks give the same predictions, up to rounding, whether the convolution is stochastic or shared. And
// what is saved predicts the same.
func TestConvolutionOfOnePixel(t *testing.T) {
	parts, err := plane(60).Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	const dtype, seed = compute.Float64, 3
	engine := computetest.Go(t)
	training := ohsmc.Training{Particles: 20, BatchSize: 12, Epochs: 2}
	settings := run.Settings{Seed: seed, Engine: engine, DType: dtype}
	type byMethod = func(context.Context, bayes.Model) (fit.Fitted, error)
	for name, method := range map[string]struct {
		fit        byMethod
		stochastic bayes.Partition
	}{
		"open horizon": {func(ctx context.Context, model bayes.Model) (fit.Fitted, error) {
			return fitted(fit.Fit(ctx, model, ohsmc.OpenHorizon{Training: training}, parts, settings))
		}, bayes.Layers(1)},
		"open horizon of the last layer": {func(ctx context.Context, model bayes.Model) (fit.Fitted, error) {
			return fitted(fit.Fit(ctx, model, ohsmc.OpenHorizon{Training: training}, parts, settings))
		}, bayes.Layers(2)},
		"guided": {func(ctx context.Context, model bayes.Model) (fit.Fitted, error) {
			return fitted(fit.Fit(ctx, model, ohsmc.Guided{Training: training, Proposal: ohsmc.Langevin{}}, parts, settings))
		}, bayes.Layers(1)},
		"HMC": {func(ctx context.Context, model bayes.Model) (fit.Fitted, error) {
			return fitted(fit.Fit(ctx, model, mcmc.Chains{Chains: 2, Draws: 5, WarmUp: 5}, parts, settings))
		}, bayes.All()},
		"full Laplace": {func(ctx context.Context, model bayes.Model) (fit.Fitted, error) {
			return fitted(fit.Fit(ctx, model, baseline.Laplace{
				Training: baseline.Training{Epochs: 5}, Structure: baseline.FullPrecision, Samples: 5,
			}, parts, settings))
		}, bayes.All()},
		"Kronecker Laplace of the last layer": {func(ctx context.Context, model bayes.Model) (fit.Fitted, error) {
			return fitted(fit.Fit(ctx, model, baseline.Laplace{
				Training: baseline.Training{Epochs: 5}, Structure: baseline.KroneckerPrecision, Samples: 5,
			}, parts, settings))
		}, bayes.Layers(2)},
		"penalty": {func(ctx context.Context, model bayes.Model) (fit.Fitted, error) {
			return fitted(fit.Fit(ctx, model, pbnn.Metropolis{Sampling: pbnn.Sampling{Chains: 2, Draws: 5, WarmUp: 5},
				BatchSize: 10, Batches: 2, StepSize: .01}, parts, settings))
		}, bayes.All()},
		"PMC": {func(ctx context.Context, model bayes.Model) (fit.Fitted, error) {
			return fit.Fit(ctx, model, pmcnet.PMC{Proposals: 3, Draws: 5, Iterations: 3}, parts,
				run.Settings{Seed: seed, Engine: engine, DType: dtype})
		}, bayes.All()},
		"CES": {func(ctx context.Context, model bayes.Model) (fit.Fitted, error) {
			few := fbnn.CES{Pairs: 60, PairsThin: 2, PairsWarmUp: 100, Emulates: fbnn.LogLikelihood,
				Regressor: fbnn.GaussianProcess{}, Draws: 50}
			return fitted(fit.Fit(ctx, model, few, parts, settings))
		}, bayes.All()},
	} {
		t.Run(name, func(t *testing.T) {
			var outputs [][]float64
			for _, network := range []nn.Network{
				nn.MLP{Hidden: []int{3}, Activation: nn.Tanh},
				nn.CNN{Height: 1, Width: 1, Channels: 2, Activation: nn.Tanh, Convolutions: []nn.Conv{{Filters: 3, Kernel: 1}}},
			} {
				result, err := method.fit(t.Context(), bayes.Model{
					Network: network, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: method.stochastic,
				})
				if err != nil {
					t.Fatal(err)
				}
				p := result.Common().Posterior
				prediction, err := p.Predict(t.Context(), parts.Test.X)
				if err != nil {
					t.Fatal(err)
				}
				outputs = append(outputs, prediction.Outputs)
				file := filepath.Join(t.TempDir(), "posterior")
				if err := p.Save(file); err != nil {
					t.Fatal(err)
				}
				loaded, err := bayes.Load(file)
				if err != nil {
					t.Fatal(err)
				}
				again, err := loaded.On(engine).Predict(t.Context(), parts.Test.X)
				if err != nil || !slices.Equal(again.Outputs, prediction.Outputs) {
					t.Errorf("what was saved predicts otherwise (%v)", err)
				}
			}
			computetest.Near(t, name, outputs[1], outputs[0], 1e-6)
		})
	}
}

// Methods for dense layers alone refuse a stochastic convolution, and say what helps.
func TestRefuseConvolution(t *testing.T) {
	model := bayes.Model{
		Network: nn.CNN{Height: 1, Width: 2, Convolutions: []nn.Conv{{Filters: 3, Kernel: 1}}}, Stochastic: bayes.All(),
		Likelihood: bayes.Gaussian{StdDev: sd},
	}
	for _, m := range []fit.Method{baseline.Dropout{}, baseline.Laplace{Structure: baseline.KroneckerPrecision}} {
		_, err := fit.Fit(t.Context(), model, m, dataset.Parts{Train: plane(20)}, run.Settings{Engine: computetest.Go(t)})
		for _, says := range []string{`"layer1/weights"`, "make it shared"} {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%T: error %v does not say %q", m, err, says)
			}
		}
	}
}

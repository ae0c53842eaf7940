package fit_test

import (
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
	"gobnn/bayes/particles"
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
	parts := computetest.Must(plane(60).Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, 1))
	const dtype, seed = compute.Float64, 3
	engine := computetest.Go(t)
	training := particles.Training{Particles: 20, BatchSize: 12, Epochs: 2}
	settings := run.Settings{Seed: seed, Engine: engine, DType: dtype}
	for name, c := range map[string]struct {
		method     fit.Method
		stochastic bayes.Partition
	}{
		"open horizon":                   {ohsmc.OpenHorizon{Training: training}, bayes.Layers(1)},
		"open horizon of the last layer": {ohsmc.OpenHorizon{Training: training}, bayes.Layers(2)},
		"guided":                         {ohsmc.Guided{Training: training, Proposal: ohsmc.Langevin{}}, bayes.Layers(1)},
		"HMC": {mcmc.Chains{Kernel: mcmc.HMC{Steps: 3}, Chains: 2, Draws: 5, WarmUp: 5},
			bayes.All()},
		"full Laplace": {baseline.Laplace{
			Training: baseline.Training{Epochs: 5}, Samples: 5,
		}, bayes.All()},
		"Kronecker Laplace of the last layer": {baseline.Laplace{
			Training: baseline.Training{Epochs: 5}, Structure: baseline.KroneckerPrecision, Samples: 5,
		}, bayes.Layers(2)},
		"penalty": {pbnn.Metropolis{
			Sampling: pbnn.Sampling{Chains: 2, Draws: 5, WarmUp: 5}, BatchSize: 10, Batches: 2, StepSize: .01,
		}, bayes.All()},
		"PMC": {pmcnet.PMC{Proposals: 3, Draws: 5, Iterations: 3}, bayes.All()},
		"CES": {fbnn.CES{
			Pairs: 60, PairsThin: 2, PairsWarmUp: 100, Emulates: fbnn.LogLikelihood, Regressor: fbnn.RandomNetwork{},
			Draws: 50,
		}, bayes.All()},
	} {
		t.Run(name, func(t *testing.T) {
			var outputs [][]float64
			for _, network := range []nn.Network{
				nn.MLP{Hidden: []int{3}, Activation: nn.Tanh},
				nn.CNN{Height: 1, Width: 1, Channels: 2, Activation: nn.Tanh, Convolutions: []nn.Conv{{Filters: 3, Kernel: 1}}},
			} {
				result, err := fit.Fit(t.Context(), bayes.Model{
					Network: network, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: c.stochastic,
				}, c.method, parts, settings)
				if err != nil {
					t.Fatal(err)
				}
				p := result.Posterior
				prediction := computetest.Must(p.Predict(t.Context(), parts.Test.X))
				outputs = append(outputs, prediction.Outputs)
				file := filepath.Join(t.TempDir(), "posterior")
				if err := p.Save(file); err != nil {
					t.Fatal(err)
				}
				loaded := computetest.Must(bayes.Load(file))
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

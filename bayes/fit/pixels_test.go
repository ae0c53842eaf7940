package fit_test

import (
	"fmt"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/fbnn"
	"gobnn/ohsmc"
	"gobnn/pbnn"
	"gobnn/pmcnet"

	"gonum.org/v1/gonum/mat"
)

// Pictures as bytes give every method the same bits as the same numbers as floats.
func TestPixelsAreNumbers(t *testing.T) {
	const rows, width = 40, 6
	bytes, y := make([]byte, rows*width), make([]float64, rows)
	for i := range bytes {
		bytes[i] = byte(i * i * 37)
	}
	for n := range y {
		y[n] = float64(bytes[n*width] / 128)
	}
	data := &dataset.Dataset{Name: "bytes", Task: dataset.BinaryClassification, Target: "y", Classes: []string{"0", "1"},
		Features: []string{"a", "b", "c", "d", "e", "f"}, X: dataset.NewPixels(bytes, width), Y: y}
	parts := computetest.Must(data.Split(dataset.Fractions{Train: .5, Validation: .25, Test: .25}, 1))
	floats := parts
	for _, part := range []**dataset.Dataset{&floats.Train, &floats.Validation, &floats.Test} {
		other := **part
		other.X = mat.DenseCopyOf(other.X)
		*part = &other
	}
	points := baseline.Training{Epochs: 2, BatchSize: 10}
	training := particles.Training{Particles: 8, Epochs: 2, BatchSize: 10}
	chains := mcmc.Chains{Kernel: mcmc.HMC{Steps: 2}, Chains: 2, Draws: 4, WarmUp: 4}
	engine := computetest.Go(t)
	for _, method := range []fit.Method{
		baseline.MAP{Training: points}, baseline.Laplace{Training: points},
		baseline.Laplace{Training: points, Structure: baseline.KroneckerPrecision},
		baseline.SWAG{Training: points}, baseline.SGHMC{Training: points}, baseline.MAPHMC{Training: points, Chains: chains},
		ohsmc.OpenHorizon{Training: training}, ohsmc.Guided{Training: training, Proposal: ohsmc.Langevin{}},
		ohsmc.SMC{Training: training, Kernel: mcmc.RandomWalkMetropolis{StepSize: .1}, Moves: 1},
		pbnn.Metropolis{Sampling: pbnn.Sampling{Chains: 2, Draws: 4, WarmUp: 4}, BatchSize: 5, Batches: 4, StepSize: .05},
		pmcnet.PMC{Proposals: 4, Draws: 4, Iterations: 2}, chains, smc.Tempered{Particles: 8, Moves: 1},
		fbnn.CES{Pairs: 12, PairsWarmUp: 2, Draws: 4,
			Regressor: fbnn.Network{Hidden: []int{4}, Activations: []nn.Activation{nn.Tanh}, Epochs: 2}},
	} {
		for _, stochastic := range []bayes.Partition{bayes.All(), bayes.Layers(2)} {
			model := bayes.Model{Network: nn.MLP{Hidden: []int{3}, Activation: nn.Tanh}, Likelihood: bayes.Bernoulli{},
				Stochastic: stochastic, Scaling: bayes.Scaling{KeepFeatures: true}}
			name := fmt.Sprintf("%T, %+v", method, stochastic)
			var outputs [2][]float64
			for i, from := range []dataset.Parts{parts, floats} {
				result, err := fit.Fit(t.Context(), model, method, from, run.Settings{Seed: 3, Engine: engine})
				if err != nil {
					if i == 0 && stochastic.Selectors[0].Layer == 2 { // it does not train shared weights
						break
					}
					t.Fatalf("%s: %v", name, err)
				}
				prediction, err := result.Posterior.Predict(t.Context(), from.Test.X)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				outputs[i] = prediction.Outputs
			}
			if !slices.Equal(outputs[0], outputs[1]) {
				t.Errorf("%s: bytes predict %v, floats %v", name, outputs[0], outputs[1])
			}
		}
	}
}

package baseline

import (
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/smc"
	"gobnn/bayes/train"
)

// With a prior whose hyperparameters are integrated out, the methods that need a density give about the same scores;
// those that train to a maximum refuse it.
func TestJointPrior(t *testing.T) {
	parts, err := line(150).Split(dataset.Fractions{Train: .3, Test: .7}, 1)
	if err != nil {
		t.Fatal(err)
	}
	model := bayes.Model{
		Network: nn.MLP{Hidden: []int{2}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .5},
		Prior: bayes.LearntPrecision{}, Stochastic: bayes.All(),
	}
	nlpd := map[string]float64{}
	for _, m := range []fit.Method{
		MLE{}, MAP{}, Ensemble{}, SAE{}, Dropout{}, SWAG{}, VI{}, Laplace{}, MAPHMC{}, SGLD{}, SGHMC{},
		mcmc.Chains{Kernel: mcmc.HMC{Steps: 5, Jitter: .5}, Chains: 16, Draws: 50, WarmUp: 100},
		smc.Tempered{Particles: 100, Moves: 1},
	} {
		density := true
		switch m.(type) {
		case VI, mcmc.Chains, smc.Tempered:
		default:
			density = false
		}
		result, err := Fit(t.Context(), model, m, parts, Settings{
			Epochs: 200, BatchSize: 20, Seed: 1, Engine: computetest.Go(t), Optimiser: train.Adam{
				Schedule: train.Exponential(.03, .5, 200)},
		})
		if !density {
			if err == nil || !strings.Contains(err.Error(), "LearntPrecision") {
				t.Errorf("%s: error %v does not name the prior", nameOf(m), err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", nameOf(m), err)
		}
		prediction, err := result.Posterior.Predict(t.Context(), parts.Test.X)
		if err != nil {
			t.Fatal(err)
		}
		score, err := metric.NLPD(prediction, parts.Test.Y)
		if err != nil {
			t.Fatal(err)
		}
		nlpd[nameOf(m)] = score.Value
	}
	t.Log(nlpd)
	for name, score := range nlpd {
		if d := score - nlpd["mcmc.Chains"]; d > .1 || d < -.1 {
			t.Errorf("%s: NLPD %.3f, the chains' %.3f", name, score, nlpd["mcmc.Chains"])
		}
	}
}

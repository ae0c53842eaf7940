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

// With a hierarchical prior, whose scales are particles' too, the methods that need a density give about the same
// scores; those that need its mode, which it has not, say so.
func TestHierarchicalPrior(t *testing.T) {
	parts, err := line(150).Split(dataset.Fractions{Train: .3, Test: .7}, 1)
	if err != nil {
		t.Fatal(err)
	}
	model := bayes.Model{
		Network: nn.MLP{Hidden: []int{2}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .5},
		Prior: bayes.Hierarchical{}, Stochastic: bayes.All(),
	}
	nlpd := map[string]float64{}
	for _, m := range append(Methods(),
		mcmc.Chains{Kernel: mcmc.HMC{Steps: 5, Jitter: .5}, Chains: 16, Draws: 50, WarmUp: 100},
		smc.Tempered{Particles: 100, Moves: 1},
	) {
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
			says := "there is no mode to train"
			if m == fit.Method(MLE{}) {
				says = "trains no hyperparameters"
			}
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: error %v does not say %q", nameOf(m), err, says)
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
		if scales, _, err := result.Posterior.Parameter("prior/layer1/log_scale"); err != nil || len(scales) == 0 {
			t.Errorf("%s: the scales of layer 1 are %v, %v", nameOf(m), scales, err)
		}
	}
	t.Log(nlpd)
	for name, score := range nlpd {
		if d := score - nlpd["mcmc.Chains"]; d > .1 || d < -.1 {
			t.Errorf("%s: NLPD %.3f, the chains' %.3f", name, score, nlpd["mcmc.Chains"])
		}
	}
}

// The density of the horseshoe is infinite at 0: every method that looks for a mode refuses it and names a cure; those
// that leave the prior out, and those that integrate it, do not.
func TestHorseshoeHasNoMode(t *testing.T) {
	model := bayes.Model{
		Network: nn.MLP{}, Likelihood: bayes.Gaussian{}, Prior: bayes.Horseshoe{}, Stochastic: bayes.All(),
	}
	for _, c := range []struct {
		method fit.Method
		says   string
	}{
		{MAP{}, "no mode"}, {Ensemble{}, "no mode"}, {SWAG{}, "no mode"}, {Dropout{}, "no mode"}, {MAPHMC{}, "no mode"},
		{SGLD{}, "no mode"}, {SGHMC{}, "no mode"}, {Laplace{}, "no mode"}, {SAE{}, "no mode"}, {MLE{}, ""},
		{Ensemble{Likelihood: true}, ""}, {VI{}, ""},
	} {
		_, err := Fit(t.Context(), model, c.method, dataset.Parts{Train: line(20)}, Settings{
			Epochs: 1, Engine: computetest.Go(t),
		})
		if c.says == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.method, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v does not say %q", c.method, err, c.says)
		} else if !(strings.Contains(err.Error(), "infinite where a weight is 0") &&
			strings.Contains(err.Error(), "take baseline.VI")) {
			t.Errorf("%+v: error %v names neither the reason nor a cure", c.method, err)
		}
	}
}

package fit_test

import (
	"context"
	"fmt"
	"log"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
)

// From makes microcanonical Langevin ensembles (Sommer, Robnik, Nozadze, Seljak and Rügamer 2025): networks trained by
// maximum likelihood, each from its own start, and a chain that begins at each. The default method, package auto, does
// so by cross-validation, and weighs networks and draws.
func ExampleFrom() {
	ctx := context.Background()
	yacht, err := dataset.Load("yacht")
	if err != nil {
		log.Fatal(err)
	}
	parts, err := yacht.Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network: nn.MLP{Hidden: []int{16}, Activation: nn.GELU}, Likelihood: bayes.Heteroscedastic{},
		Stochastic: bayes.All(),
	}
	nlpd := func(method fit.Method, model bayes.Model) (*bayes.Posterior, float64) {
		result, err := fit.Fit(ctx, model, method, parts, run.Settings{Seed: 1})
		if err != nil {
			log.Fatal(err)
		}
		prediction, err := result.Posterior.Predict(ctx, parts.Test.X)
		if err != nil {
			log.Fatal(err)
		}
		score, err := metric.NLPD(prediction, parts.Test.Y)
		if err != nil {
			log.Fatal(err)
		}
		return result.Posterior, score.Value
	}
	networks, before := nlpd(baseline.Ensemble{
		Members: 8, Likelihood: true, Training: train.Training{Epochs: 200, Patience: 40},
	}, model)
	draws, after := nlpd(fit.From{Trained: networks, Method: mcmc.Chains{
		Kernel: mcmc.MCLMC{}, Chains: 8, WarmUp: 300, Draws: 50, Thin: 4,
	}}, bayes.Model{})
	fmt.Println(networks.Particles(), "networks,", draws.Particles(), "draws; a lower NLPD:", after < before)
	// Output:
	// 8 networks, 400 draws; a lower NLPD: true
}

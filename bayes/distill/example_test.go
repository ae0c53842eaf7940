package distill_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/distill"
	"gobnn/bayes/fit"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
)

// A service must answer in a millisecond, and the posterior has 500 particles. Those that predict the same as all of
// them, to a twentieth of a standard deviation, are far fewer, and score as well.
func ExamplePosterior() {
	ctx := context.Background()
	parts, err := dataset.MustLoad("yacht").Split(dataset.Fractions{Train: .8, Test: .2}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{Network: nn.MLP{Hidden: []int{10}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{Learn: true}}
	swag := baseline.SWAG{Samples: 500, Training: baseline.Training{Epochs: 100, Optimiser: train.Adam{}}}
	result, err := fit.Fit(ctx, model, swag, parts, run.Settings{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	small, off, err := distill.Posterior(ctx, result.Posterior, parts.Train.X, .05)
	if err != nil {
		log.Fatal(err)
	}
	var nlpd []float64
	for _, p := range []*bayes.Posterior{result.Posterior, small} {
		scores, err := metric.Of(ctx, p, parts.Test)
		if err != nil {
			log.Fatal(err)
		}
		nlpd = append(nlpd, scores[0].Value)
	}
	fmt.Println("fewer than one in ten particles remain:", 10*small.Particles() < result.Posterior.Particles())
	fmt.Println("their means are within .05 standard deviations:", off.Mean <= .05)
	fmt.Println("the NLPD of other rows changes by less than .1:", math.Abs(nlpd[1]-nlpd[0]) < .1)
	// Output:
	// fewer than one in ten particles remain: true
	// their means are within .05 standard deviations: true
	// the NLPD of other rows changes by less than .1: true
}

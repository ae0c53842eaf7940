package fit_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/ohsmc"

	"gonum.org/v1/gonum/stat"
)

// Steps gives the loop of a run to you: to look at the particles on the way, and to leave when you have what you want.
// Here that is a step whose particles predict the validation part better than the normal distribution with the target's
// mean and standard deviation does, whose NLPD is 1.42 plus the logarithm of that deviation.
func ExampleSteps() {
	ctx := context.Background()
	parts, err := dataset.MustLoad("yacht").Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{10, 5}, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{StdDev: .5},
		Stochastic: bayes.Layers(3),
	}
	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 100, BatchSize: 20, Epochs: 100}}
	normal := 1.42 + math.Log(stat.PopStdDev(parts.Train.Y, nil))
	for now, err := range fit.Steps(ctx, model, method, parts, run.Settings{}) {
		if err != nil {
			log.Fatal(err)
		}
		if !(now.Score(fit.ValidationCurve) < normal) {
			continue
		}
		result, err := now.Now()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d particles, before step %d\n", result.Posterior.Particles(), now.Steps)
		break
	}
	// Output:
	// 100 particles, before step 1000
}

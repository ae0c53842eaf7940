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

// Now looks at the particles on the way, after a step that run.Watched shows, and the context leaves the run there.
// Here that is a step whose particles predict the validation part better than the normal distribution with the target's
// mean and standard deviation does, whose NLPD is 1.42 plus the logarithm of that deviation.
func ExampleNow() {
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
	ctx, leave := context.WithCancel(context.Background())
	watched := run.Watched(ctx, func(p run.Progress, m run.Machine) {
		if !(p.Score(fit.ValidationCurve) < normal) {
			return
		}
		result, err := fit.Now(m)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d particles, before step %d\n", result.Posterior.Particles(), p.Steps)
		leave()
	})
	if _, err := fit.Fit(watched, model, method, parts, run.Settings{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 100 particles, before step 1000
}

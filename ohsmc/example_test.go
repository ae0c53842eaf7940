package ohsmc_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/ohsmc"

	"gonum.org/v1/gonum/stat"
)

// A partial network on the yacht data: train, save, load, predict.
func ExampleFit() {
	ctx := context.Background()
	parts, err := dataset.Yacht().Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{50, 20, 5}, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{StdDev: 1},
		Prior:      bayes.Normal{StdDev: 1},
		Stochastic: bayes.Layers(3),
	}
	result, err := ohsmc.Fit(ctx, model, nil, parts, ohsmc.Settings{Particles: 100, BatchSize: 20, Epochs: 5})
	if err != nil {
		log.Fatal(err)
	}

	folder, err := os.MkdirTemp("", "posterior")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "yacht.safetensors")
	if err := result.Posterior.Save(file); err != nil {
		log.Fatal(err)
	}
	posterior, err := bayes.Load(file)
	if err != nil {
		log.Fatal(err)
	}
	prediction, err := posterior.Predict(ctx, parts.Test.X)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Status, "after", result.Steps, "steps")
	fmt.Println(prediction.Particles, "particles predict", prediction.Rows, "rows")
	// Output:
	// completed after 50 steps
	// 100 particles predict 31 rows
}

// SGSMC-HMC: psi by SMC on sub-datasets, then the exact posterior at that psi by four chains of HMC, whose
// convergence is looked at.
func ExampleSample() {
	ctx := context.Background()
	parts, err := dataset.Yacht().Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{10, 5}, Activation: nn.Tanh},
		Likelihood: bayes.Gaussian{StdDev: 1},
		Stochastic: bayes.Layers(3),
	}
	smc := ohsmc.SMC{Kernel: mcmc.RandomWalkMetropolis{StepSize: .5}, Moves: 2}
	trained, err := ohsmc.Fit(ctx, model, smc, parts, ohsmc.Settings{Particles: 100, BatchSize: 10, Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	chainSettings := mcmc.Settings{Chains: 4, Draws: 300, WarmUp: 200}
	sampled, err := ohsmc.Sample(ctx, trained.Posterior, mcmc.HMC{Steps: 10}, parts.Train, chainSettings)
	if err != nil {
		log.Fatal(err)
	}
	chains, err := diag.NewForPosterior(sampled.Posterior)
	if err != nil {
		log.Fatal(err)
	}
	rHat, err := chains.RHat(0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sampled.Posterior.Particles(), "draws,", sampled.Status, "and converged:", rHat < 1.05)
	// Output:
	// 1200 draws, completed and converged: true
}

// Guided proposals: Langevin steps whose size is adapted until they would be accepted as often as is best for them. The
// acceptance of the last ten steps shows whether 20 epochs were enough for that.
func ExampleGuided() {
	parts, err := dataset.Yacht().Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{20, 5}, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{StdDev: 1},
		Stochastic: bayes.Layers(1),
	}
	guided := ohsmc.Guided{Proposal: ohsmc.Langevin{}, Adapt: .574}
	settings := ohsmc.Settings{Particles: 100, BatchSize: 20, Epochs: 20}
	result, err := ohsmc.Fit(context.Background(), model, guided, parts, settings)
	if err != nil {
		log.Fatal(err)
	}
	acceptance := 0.0
	for _, step := range result.Trace[100:] {
		acceptance += step.Acceptance / 100
	}
	fmt.Printf("%d steps, the last hundred accepted with probability %.1f\n", result.Steps, acceptance)
	// Output:
	// 200 steps, the last hundred accepted with probability 0.6
}

// Steps gives the loop of a training to you: to look at psi and the particles on the way, and to leave when you have
// what you want. Here that is a step whose particles predict the validation part better than the normal distribution
// with the target's mean and standard deviation does, whose NLPD is 1.42 plus the logarithm of that deviation.
func ExampleSteps() {
	ctx := context.Background()
	parts, err := dataset.Yacht().Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{10, 5}, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{StdDev: .5},
		Stochastic: bayes.Layers(3),
	}
	settings := ohsmc.Settings{Particles: 100, BatchSize: 20, Epochs: 100}
	normal := 1.42 + math.Log(stat.PopStdDev(parts.Train.Y, nil))
	for now, err := range ohsmc.Steps(ctx, model, nil, parts, settings) {
		if err != nil {
			log.Fatal(err)
		}
		if nlpd := now.Score(fit.ValidationCurve); nlpd > normal {
			continue
		}
		psi, err := now.Psi()
		if err != nil {
			log.Fatal(err)
		}
		posterior, err := now.Posterior()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d shared parameters and %d particles, before step %d\n", len(psi), posterior.Particles(), now.Steps)
		break
	}
	// Output:
	// 125 shared parameters and 100 particles, before step 1000
}

package ohsmc_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/ohsmc"
)

// A partial network on the yacht data: train, save, load, predict.
func Example() {
	ctx := context.Background()
	parts, err := dataset.MustLoad("yacht").Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{50, 20, 5}, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{StdDev: 1},
		Prior:      bayes.Normal{StdDev: 1},
		Stochastic: bayes.Layers(3),
	}
	training := particles.Training{Particles: 100, BatchSize: 20, Epochs: 5}
	result, err := fit.Fit(ctx, model, ohsmc.OpenHorizon{Training: training}, parts, run.Settings{Seed: 1})
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
	fmt.Println(result.Status, "after", fit.Details[*particles.Details](result).Steps, "steps")
	fmt.Println(prediction.Particles, "particles predict", prediction.Rows, "rows")
	// Output:
	// completed after 50 steps
	// 100 particles predict 31 rows
}

// SGSMC-HMC: psi by SMC on sub-datasets, then the exact posterior at that psi by four chains of HMC, whose
// convergence is looked at.
func ExampleSMC() {
	ctx := context.Background()
	parts, err := dataset.MustLoad("yacht").Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{10, 5}, Activation: nn.Tanh},
		Likelihood: bayes.Gaussian{StdDev: 1},
		Stochastic: bayes.Layers(3),
	}
	trained, err := fit.Fit(ctx, model, ohsmc.SMC{
		Training: particles.Training{Particles: 100, BatchSize: 10, Epochs: 1},
		Kernel:   mcmc.RandomWalkMetropolis{StepSize: .5}, Moves: 2,
	}, parts, run.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	chains := mcmc.Chains{Kernel: mcmc.HMC{Steps: 10}, Chains: 4, Draws: 300, WarmUp: 200}
	exact := fit.From{Trained: trained.Posterior, Method: chains}
	sampled, err := fit.Fit(ctx, bayes.Model{}, exact, parts, run.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	summary, err := diag.OfPosterior(sampled.Posterior)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sampled.Posterior.Particles(), "draws,", sampled.Status, "and converged:", summary.Rows[0].RHat < 1.05)
	// Output:
	// 1200 draws, completed and converged: true
}

// Guided proposals: Langevin steps whose size is adapted until they would be accepted as often as is best for them. The
// acceptance of the last ten steps shows whether 20 epochs were enough for that.
func ExampleGuided() {
	parts, err := dataset.MustLoad("yacht").Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{20, 5}, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{StdDev: 1},
		Stochastic: bayes.Layers(1),
	}
	guided := ohsmc.Guided{
		Training: particles.Training{Particles: 100, BatchSize: 20, Epochs: 20}, Proposal: ohsmc.Langevin{}, Adapt: .574,
	}
	result, err := fit.Fit(context.Background(), model, guided, parts, run.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	training, acceptance := fit.Details[*particles.Details](result), 0.0
	for _, step := range training.Trace[100:] {
		acceptance += step.Acceptance / 100
	}
	fmt.Printf("%d steps, the last hundred accepted with probability %.1f\n", training.Steps, acceptance)
	// Output:
	// 200 steps, the last hundred accepted with probability 0.6
}

package run_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/ohsmc"
)

// A program that Ctrl-C stops, and that continues from its checkpoint when it is started again with the same settings.
func ExampleContext() {
	ctx := run.Context()
	parts, err := dataset.MustLoad("yacht").Split(dataset.Fractions{Train: .9, Test: .1}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{5}},
		Likelihood: bayes.Gaussian{Learn: true},
		Stochastic: bayes.Layers(2),
	}
	folder, err := os.MkdirTemp("", "run") // a program would use a folder that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	checkpoint := filepath.Join(folder, "yacht.checkpoint")
	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 20, Epochs: 2}}
	result, err := fit.Fit(ctx, model, method, parts, run.Settings{Checkpoint: checkpoint})
	if err != nil {
		log.Fatal(err)
	}
	if err := result.Status.Err(); err != nil { // after Ctrl-C
		fmt.Println(err, "- start the program again to continue")
		return
	}
	fmt.Println(result.Status)
	// Output:
	// completed
}

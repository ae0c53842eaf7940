package ohsmc_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
	"gobnn/ohsmc"
)

// A partial network on the yacht data: train, save, load, predict.
func ExampleTrain() {
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
	result, err := ohsmc.Train(ctx, model, parts, ohsmc.Settings{Particles: 100, BatchSize: 20, Epochs: 5})
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

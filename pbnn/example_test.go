package pbnn_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/pbnn"

	"gonum.org/v1/gonum/mat"
)

// The expected posterior of 20 points of a network on 500 rows: each move looks at 10 mini-batches of 20 of them.
func ExampleMetropolis() {
	xs := mat.NewDense(500, 1, nil)
	data := &dataset.Dataset{
		Name: "wave", Task: dataset.Regression, Features: []string{"x"}, Target: "y",
		X: xs, Y: make([]float64, 500),
	}
	for i := range data.Y {
		x := -3 + 6*float64(i)/499
		xs.Set(i, 0, x)
		data.Y[i] = math.Sin(x) + .1*math.Cos(40*x)
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{8}, Activation: nn.Tanh},
		Likelihood: bayes.Gaussian{StdDev: .2},
	}
	sampler := pbnn.Metropolis{
		Sampling: pbnn.Sampling{Chains: 8, Draws: 100, Thin: 10, WarmUp: 1000},
		Target:   pbnn.TargetExpected{}, BatchSize: 20, Batches: 10,
	}
	result, err := fit.Fit(context.Background(), model, sampler, dataset.Parts{Train: data}, run.Settings{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Status, result.Posterior.Particles(), "draws by", result.Posterior.Provenance().Algorithm)
	prediction, err := result.Posterior.Predict(context.Background(), mat.NewDense(2, 1, []float64{-1.5, 1.5}))
	if err != nil {
		log.Fatal(err)
	}
	mean, err := prediction.Mean()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.0f\n", mean) // the sine of both
	// Output:
	// completed 800 draws by pbnn: pbnn.Metropolis of the expected posterior of 20 points
	// [-1 1]
}

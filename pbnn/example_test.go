package pbnn_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/pbnn"

	"gonum.org/v1/gonum/mat"
)

// The expected posterior of 20 points of a network on 500 rows: each move looks at 10 mini-batches of 20 of them.
func ExampleSample() {
	data := &dataset.Dataset{Name: "wave", Task: dataset.Regression, Features: []string{"x"}, Target: "y", X: mat.NewDense(500, 1, nil), Y: make([]float64, 500)}
	for i := range data.Y {
		x := -3 + 6*float64(i)/499
		data.X.Set(i, 0, x)
		data.Y[i] = math.Sin(x) + .1*math.Cos(40*x)
	}
	model := bayes.Model{Network: nn.MLP{Hidden: []int{8}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .2}, Stochastic: bayes.All()}
	sampler := pbnn.Metropolis{Target: pbnn.TargetExpected{}, BatchSize: 20, Batches: 10}
	result, err := pbnn.Sample(context.Background(), model, data, sampler, pbnn.Settings{
		Settings: mcmc.Settings{Chains: 8, Draws: 100, WarmUp: 300, Seed: 1},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Chains.Status, "draws of the", result.Target)
	fmt.Println("particles:", result.Posterior.Particles(), " some were accepted:", result.Acceptance > .05, " the noise was small:", result.Noise < 3)
	// Output:
	// completed draws of the expected posterior of 20 points
	// particles: 800  some were accepted: true  the noise was small: true
}

package baseline_test

import (
	"context"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
)

// Rivals on one split: the same model, parts and epochs for each.
func Example() {
	parts, err := dataset.Yacht().Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{20, 10}, Activation: nn.Tanh},
		Likelihood: bayes.Gaussian{StdDev: .3},
		Stochastic: bayes.Layers(2),
	}
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, method := range []baseline.Method{baseline.MAP{}, baseline.Ensemble{Members: 5}, baseline.SWAG{Collect: 10},
		baseline.VI{}, baseline.Laplace{}} {
		result, err := baseline.Fit(context.Background(), model, method, parts, baseline.Settings{Epochs: 20, BatchSize: 20,
			Engine: engine})
		if err != nil {
			fmt.Println(err)
			return
		}
		scores, err := metric.OfStandardised(context.Background(), result.Posterior, parts.Test)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %d particles, %s %.1f\n", method.Name(), result.Posterior.Particles(), scores[1].Name,
			scores[1].Value)
	}
	// Output:
	// MAP: 1 particles, RMSE 0.2
	// deep ensemble: 5 particles, RMSE 0.2
	// SWAG: 100 particles, RMSE 0.2
	// VI: 100 particles, RMSE 0.3
	// Laplace: 100 particles, RMSE 0.2
}

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
	for _, method := range []baseline.Method{baseline.MAP{}, baseline.Ensemble{Members: 5}, baseline.SWAG{Collect: 10}, baseline.VI{}, baseline.Laplace{}} {
		result, err := baseline.Fit(context.Background(), model, method, parts, baseline.Settings{Epochs: 20, BatchSize: 20, Engine: engine})
		if err != nil {
			fmt.Println(err)
			return
		}
		prediction, err := result.Posterior.Predict(context.Background(), parts.Test.X)
		if err != nil {
			fmt.Println(err)
			return
		}
		nlpd, err := metric.NLPD(prediction.Standardised(), prediction.StandardiseTarget(parts.Test.Y))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %d particles, better than guessing: %t\n", method.Name(), result.Posterior.Particles(), nlpd.Value < 1.4)
	}
	// Output:
	// MAP: 1 particles, better than guessing: true
	// deep ensemble: 5 particles, better than guessing: true
	// SWAG: 100 particles, better than guessing: true
	// VI: 100 particles, better than guessing: true
	// Laplace: 100 particles, better than guessing: true
}

package baseline_test

import (
	"context"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// Rivals on one split: the same model, parts and epochs for each.
func Example() {
	parts, err := dataset.MustLoad("yacht").Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
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
	training := baseline.Training{Epochs: 20, BatchSize: 20}
	for _, method := range []fit.Method{
		baseline.MAP{Training: training}, baseline.Ensemble{Training: training, Members: 5},
		baseline.SWAG{Training: training, Collect: 10}, baseline.VI{Training: training},
		baseline.Laplace{Training: training},
	} {
		result, err := fit.Fit(context.Background(), model, method, parts, run.Settings{Engine: engine})
		if err != nil {
			fmt.Println(err)
			return
		}
		prediction, err := result.Posterior.Predict(context.Background(), parts.Test.X)
		if err != nil {
			fmt.Println(err)
			return
		}
		rmse, err := metric.RMSE(prediction.Standardised(), prediction.StandardiseTarget(parts.Test.Y))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%T: %d particles, RMSE %.1f\n", method, result.Posterior.Particles(), rmse.Value)
	}
	// Output:
	// baseline.MAP: 1 particles, RMSE 0.2
	// baseline.Ensemble: 5 particles, RMSE 0.2
	// baseline.SWAG: 100 particles, RMSE 0.2
	// baseline.VI: 100 particles, RMSE 0.3
	// baseline.Laplace: 100 particles, RMSE 0.2
}

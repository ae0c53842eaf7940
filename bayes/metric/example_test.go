package metric_test

import (
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/metric"
)

func Example() {
	// Four particles predict three rows.
	prediction := bayes.Prediction{
		Likelihood: bayes.Gaussian{StdDev: 0.3}, Particles: 4, Rows: 3, Width: 1,
		Outputs: []float64{
			1.0, 2.1, 2.9,
			1.2, 1.9, 3.2,
			0.9, 2.2, 3.0,
			1.1, 2.0, 3.1,
		},
		Weights: []float64{0.4, 0.3, 0.2, 0.1},
	}
	y := []float64{1.3, 2.0, 2.6}
	rmse, err := metric.RMSE(prediction, y)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("RMSE", rmse)
	scores, err := metric.Scores(prediction, y)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(scores)
	// Output:
	// RMSE 0.29 ± 0.03
	// score               value ± Monte Carlo s.e.  sampling s.e.
	// NLPD                0.18 ± 0.12               0.25
	// RMSE                0.29 ± 0.03               0.093
	// particle RMSE       0.31 ± 0.04               -
	// coverage 95%        1.00 ± 0.14               0.15
	// width 95%           1.26 ± 0.04               0.0069
	// interval score 95%  1.26 ± 0.04               0.0069
	// CRPS                0.167 ± 0.018             0.057
}

package conformal_test

import (
	"fmt"
	"math/rand/v2"

	"gobnn/bayes"
	"gobnn/bayes/conformal"
)

// Predictions that are too sure: they say N(0, 0.5), and the targets are N(0, 1). Of 999 rows that calibrate, 90 %
// intervals are made that hold about 90 %.
func Example() {
	rng := rand.New(rand.NewPCG(1, 1))
	rows := func(n int) (p bayes.Prediction, y []float64) {
		p = bayes.Prediction{Likelihood: bayes.Gaussian{StdDev: .5}, Particles: 1, Rows: n, Width: 1, Weights: []float64{1}}
		p.Outputs = make([]float64, n)
		for range n {
			y = append(y, rng.NormFloat64())
		}
		return p, y
	}
	held := func(lower, upper, y []float64) (share float64) {
		for i := range y {
			if lower[i] <= y[i] && y[i] <= upper[i] {
				share += 1 / float64(len(y))
			}
		}
		return share
	}

	left, y := rows(999)
	c, err := conformal.Calibrate(conformal.Part{Prediction: left, Y: y})
	if err != nil {
		panic(err)
	}
	prediction, y := rows(2000)
	lower, upper, err := prediction.Interval(.9)
	if err != nil {
		panic(err)
	}
	fmt.Printf("the posterior's: %.2f\n", held(lower, upper, y))
	lower, upper, err = c.Interval(.9, nil, prediction)
	if err != nil {
		panic(err)
	}
	fmt.Printf("calibrated: %.2f\n", held(lower, upper, y))
	// Output:
	// the posterior's: 0.58
	// calibrated: 0.90
}

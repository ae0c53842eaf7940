package fbnn_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/fbnn"

	"gonum.org/v1/gonum/mat"
)

// A straight line through 20 points has two parameters, of which a random network learns the log-likelihood. Each
// draw is accepted or rejected by the network once more, which says how good the emulator is: most are accepted.
func ExampleCES() {
	const n = 20
	x, y := mat.NewDense(n, 1, nil), make([]float64, n)
	for i := range n {
		v := -2 + 4*float64(i)/(n-1)
		x.Set(i, 0, v)
		y[i] = 1 + .5*v + .2*math.Sin(40*v)
	}
	data := &dataset.Dataset{Name: "line", Task: dataset.Regression, X: x, Y: y, Features: []string{"x"}, Target: "y"}
	model := bayes.Model{
		Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .3}, Prior: bayes.Normal{StdDev: 1},
		Stochastic: bayes.All(),
	}
	method := fbnn.CES{Emulates: fbnn.LogLikelihood, Regressor: fbnn.RandomNetwork{}, Draws: 1000}
	result, err := fit.Fit(context.Background(), model, method, dataset.Parts{Train: data},
		run.Settings{DType: compute.Float64})
	if err != nil {
		log.Fatal(err)
	}
	details := fit.Details[*fbnn.Details](result)
	fmt.Println("the emulator's error of the log-likelihood is below .1:", details.Truth.RMS < .1)
	fmt.Println("the second stage accepts more than 80 %:", details.SecondStage > .8)
	fmt.Println("warnings:", len(result.Warnings))
	prediction, err := result.Posterior.Predict(context.Background(), mat.NewDense(1, 1, []float64{1}))
	if err != nil {
		log.Fatal(err)
	}
	mean, err := prediction.Mean()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the mean at 1 is near 1.5:", math.Abs(mean[0]-1.5) < .1)
	// Output:
	// the emulator's error of the log-likelihood is below .1: true
	// the second stage accepts more than 80 %: true
	// warnings: 0
	// the mean at 1 is near 1.5: true
}

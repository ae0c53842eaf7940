package bayes_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
)

// fares is a table with a category; each is y = 2 km + 3, and 10 more at night.
const fares = `km,time,fare
1,day,5
2,day,7
3,day,9
4,day,11
1,night,15
2,night,17
3,night,19
4,night,21
`

// From a file of one's own to a prediction for new rows, whose fare is not known.
func ExamplePosterior_Predict() {
	ctx := context.Background()
	train, err := dataset.ReadCSV(strings.NewReader(fares), dataset.CSVOptions{Categorical: []string{"time"}})
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .01}, Stochastic: bayes.All()}
	method := baseline.Laplace{Training: baseline.Training{Epochs: 1000}}
	result, err := fit.Fit(ctx, model, method, dataset.Parts{Train: train}, run.Settings{})
	if err != nil {
		log.Fatal(err)
	}

	rows, err := dataset.ReadCSV(strings.NewReader("time,km\nnight,2.5\nday,1.5\n"), dataset.CSVOptions{Like: train})
	if err != nil {
		log.Fatal(err)
	}
	prediction, err := result.Posterior.Predict(ctx, rows.X)
	if err != nil {
		log.Fatal(err)
	}
	mean, err := prediction.Mean()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows.Features)
	for i, y := range mean {
		fmt.Printf("%v: %.0f\n", mat.Row(nil, i, rows.X), y)
	}
	// Output:
	// [km time=day time=night]
	// [2.5 0 1]: 18
	// [1.5 1 0]: 6
}

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
)

// risks is a table whose target has an order that the alphabet does not know.
const risks = `speed,risk
1,low
2,low
3,low
4,medium
5,low
6,medium
7,high
8,medium
9,high
10,high
`

// Classes that have an order are listed from the lowest to the highest. One output of the network says how high a row
// is, whatever the number of classes.
func ExampleOrdinal() {
	ctx := context.Background()
	train, err := dataset.ReadCSV(strings.NewReader(risks), dataset.CSVOptions{
		Task: dataset.Classification, Classes: []string{"low", "medium", "high"},
	})
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network: nn.MLP{}, Likelihood: bayes.Ordinal{}, Prior: bayes.Normal{StdDev: 3}, Stochastic: bayes.All(),
	}
	method := baseline.Laplace{Training: baseline.Training{Epochs: 1000}, Samples: 1000}
	result, err := fit.Fit(ctx, model, method, dataset.Parts{Train: train}, run.Settings{})
	if err != nil {
		log.Fatal(err)
	}

	rows, err := dataset.ReadCSV(strings.NewReader("speed\n2\n6\n8\n"),
		dataset.CSVOptions{Like: result.Posterior.Like()})
	if err != nil {
		log.Fatal(err)
	}
	prediction, err := result.Posterior.Predict(ctx, rows.X)
	if err != nil {
		log.Fatal(err)
	}
	probabilities, err := prediction.Probabilities()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows.Classes)
	for i, p := range probabilities {
		fmt.Printf("speed %v: %.1f\n", rows.X.At(i, 0), p)
	}
	// Output:
	// [low medium high]
	// speed 2: [0.9 0.1 0.0]
	// speed 6: [0.2 0.6 0.2]
	// speed 8: [0.0 0.4 0.6]
}

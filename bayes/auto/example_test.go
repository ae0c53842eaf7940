package auto_test

import (
	"context"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/auto"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
)

// From a table to intervals: nothing is chosen but the rows to test on.
func Example() {
	ctx := context.Background()
	parts, err := dataset.MustLoad("yacht").Split(dataset.Fractions{Train: .8, Test: .2}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	model, err := bayes.ModelFor(parts.Train)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := fit.Fit(ctx, model, auto.Method{}, parts, run.Settings{})
	if err != nil {
		fmt.Println(err)
		return
	}
	prediction, err := result.Posterior.Predict(ctx, parts.Test.X)
	if err != nil {
		fmt.Println(err)
		return
	}
	lower, upper, err := prediction.Interval(.9)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.1f to %.1f, measured %.1f\n", lower[0], upper[0], parts.Test.Y[0])
}

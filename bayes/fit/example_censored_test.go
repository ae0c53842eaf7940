package fit_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"math/rand/v2"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
)

// Pumps that still run after their last inspection have lived for at least as long: their lifetimes are censored. To
// take these as lifetimes would be too gloomy. The target is the logarithm, since a time is positive.
func ExampleFit_censored() {
	rng := rand.New(rand.NewPCG(1, 2))
	const pumps = 200
	d := &dataset.Dataset{Name: "pumps", Features: []string{"load"}, Target: "log years", X: mat.NewDense(pumps, 1, nil)}
	for i := range pumps {
		load := rng.Float64()
		d.X.(*mat.Dense).Set(i, 0, load)
		failure := math.Exp(2 - 2*load + .3*rng.NormFloat64())
		inspected := 1 + 4*rng.Float64()
		d.Y = append(d.Y, math.Log(min(failure, inspected)))
		d.Censored = append(d.Censored, failure > inspected)
	}
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{Learn: true}}
	for range 2 {
		result, err := fit.Fit(context.Background(), model, baseline.MAP{}, dataset.Parts{Train: d}, run.Settings{Seed: 1})
		if err != nil {
			log.Fatal(err)
		}
		p, err := result.Posterior.Predict(context.Background(), mat.NewDense(1, 1, []float64{.2}))
		if err != nil {
			log.Fatal(err)
		}
		median, err := p.Quantile(.5)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%v: a load of .2 is borne for %.1f years\n", d.Censored != nil, math.Exp(median[0]))
		d.Censored = nil
	}
	fmt.Printf("in truth for %.1f years\n", math.Exp(2-2*.2))
	// Output:
	// true: a load of .2 is borne for 4.9 years
	// false: a load of .2 is borne for 2.5 years
	// in truth for 5.0 years
}

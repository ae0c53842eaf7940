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
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Claims are counted over policies that ran for unequal times, here from a month to three years. With them as the
// Exposure the model gives claims a year, and a price for any time; as a feature they would have to be learnt.
func ExampleFit_exposure() {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(1, 2))
	const policies = 500
	perYear := func(age float64) float64 { return math.Exp(.5 - 2*age) }
	d := &dataset.Dataset{Name: "policies", Features: []string{"age"}, Target: "claims", X: mat.NewDense(policies, 1, nil)}
	for i := range policies {
		age, years := rng.Float64(), 1./12+3*rng.Float64()
		d.X.(*mat.Dense).Set(i, 0, age)
		d.Exposure = append(d.Exposure, years)
		d.Y = append(d.Y, distuv.Poisson{Lambda: years * perYear(age), Src: rng}.Rand())
	}
	model, err := bayes.ModelFor(d) // its likelihood is bayes.NegativeBinomial, since there is an Exposure
	if err != nil {
		log.Fatal(err)
	}
	result, err := fit.Fit(ctx, model, baseline.MAP{}, dataset.Parts{Train: d}, run.Settings{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	p, err := result.Posterior.Predict(ctx, mat.NewDense(2, 1, []float64{.1, .9}))
	if err == nil {
		p, err = p.WithExposure([]float64{1, 1}) // a year each
	}
	if err != nil {
		log.Fatal(err)
	}
	claims, err := p.Mean()
	if err != nil {
		log.Fatal(err)
	}
	for i, age := range []float64{.1, .9} {
		fmt.Printf("at age %.1f: %.1f claims a year, in truth %.1f\n", age, claims[i], perYear(age))
	}
	// Output:
	// at age 0.1: 1.4 claims a year, in truth 1.3
	// at age 0.9: 0.3 claims a year, in truth 0.3
}

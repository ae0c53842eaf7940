package baseline

import (
	"context"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/mat"
)

// goEngine is the Go backend, for tests of what no compiler changes.
func goEngine(t testing.TB) *compute.Engine {
	t.Helper()
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// line is y = 1.5 x_1 - x_2 + 0.5 + N(0, 0.3^2), with correlated features.
func line(rows int) *dataset.Dataset {
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := mat.NewDense(rows, 2, nil), make([]float64, rows)
	for n := range y {
		a := rng.NormFloat64()
		b := .6*a + .8*rng.NormFloat64()
		x.SetRow(n, []float64{a, b})
		y[n] = 1.5*a - b + .5 + .3*rng.NormFloat64()
	}
	return &dataset.Dataset{Name: "line", Task: dataset.Regression, Features: []string{"a", "b"}, Target: "y", X: x, Y: y}
}

// small is a partial network that trains in a moment.
var small = bayes.Model{Network: nn.MLP{Hidden: []int{5, 3}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .5}, Stochastic: bayes.Layers(2)}

func split3(t testing.TB, data *dataset.Dataset) dataset.Parts {
	t.Helper()
	p, err := data.Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func fit(t testing.TB, model bayes.Model, method Method, parts dataset.Parts, settings Settings) *Result {
	t.Helper()
	result, err := Fit(context.Background(), model, method, parts, settings)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

package shards

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/mat"
)

const noiseStdDev = .6

// line is a regression on two correlated features, whose posterior is far from symmetric in them.
func line(rows int) *dataset.Dataset {
	d := &dataset.Dataset{Name: "line", Task: dataset.Regression, Features: []string{"a", "b"}, Target: "y",
		X: mat.NewDense(rows, 2, nil), Y: make([]float64, rows)}
	for i := range rows {
		a, e := math.Sin(1.7*float64(i)), math.Cos(2.9*float64(i))
		b := .8*a + .6*math.Sin(5.1*float64(i))
		d.X.(*mat.Dense).SetRow(i, []float64{a, b})
		d.Y[i] = 2*a - b + .3 + .8*e
	}
	return d
}

// bayesianLine is y ~ N(w x + b, sd^2) with w and b stochastic: conjugate.
func bayesianLine() bayes.Model {
	return bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: noiseStdDev}, Stochastic: bayes.All()}
}

// says is whether an error is there and has the words.
func says(err error, words string) bool { return err != nil && strings.Contains(err.Error(), words) }

func flat(t *testing.T, r *Result) []float64 {
	t.Helper()
	values, err := compute.Float64s(r.Chains.Draws.Tensor())
	if err != nil {
		t.Fatal(err)
	}
	return values
}

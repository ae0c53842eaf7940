package metric_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/mat"
)

// linear is a posterior of three particles of a linear model of one feature, and 2500 rows of data.
func linear(t *testing.T, likelihood bayes.Likelihood, task dataset.Task) (*bayes.Posterior, *dataset.Dataset) {
	t.Helper()
	data := &dataset.Dataset{
		Name: "rows", Task: task, X: mat.NewDense(2500, 1, nil), Y: make([]float64, 2500),
		Features: []string{"x"}, Target: "y",
	}
	for n := range data.Y {
		x := math.Sin(float64(n))
		data.X.(*mat.Dense).Set(n, 0, x)
		data.Y[n] = 7 + 3*x + math.Cos(3*float64(n))
		if task != dataset.Regression {
			data.Y[n] = float64(n % 2)
		}
	}
	if task != dataset.Regression {
		data.Classes = []string{"even", "odd"}
	}
	bound, err := bayes.Model{Network: nn.MLP{}, Likelihood: likelihood, Stochastic: bayes.All()}.Bind(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	features, target := dataset.FitScaler(data.X), dataset.Scaler{}
	if task == dataset.Regression {
		target = dataset.Scaler{Mean: []float64{6}, StdDev: []float64{4}}
	}
	p, err := bayes.NewPosterior(bound, bayes.Draws{
		Phi: compute.Floats(compute.Float64, []float64{1, .1, .8, 0, 1.2, -.1}, 3, 2), LogWeights: []float64{0, -1, -2},
	}, bayes.Origin{
		Features: features, Target: target, FeatureNames: data.Features, Classes: data.Classes, Engine: engine,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, data
}

// The scores of a posterior on a dataset are those of its prediction, in either units, though rows come in batches.
func TestOf(t *testing.T) {
	for _, c := range []struct {
		likelihood bayes.Likelihood
		task       dataset.Task
	}{{bayes.Gaussian{StdDev: .5}, dataset.Regression}, {bayes.Bernoulli{}, dataset.BinaryClassification}} {
		p, data := linear(t, c.likelihood, c.task)
		prediction, err := p.Predict(t.Context(), data.X)
		if err != nil {
			t.Fatal(err)
		}
		same := func(what string, got metric.Table, failed error, of bayes.Prediction, y []float64) {
			t.Helper()
			want, err := metric.Scores(of, y)
			if err != nil || failed != nil {
				t.Fatal(err, failed)
			}
			for i, s := range got {
				if s.Name != want[i].Name || math.Abs(s.Value-want[i].Value) > 1e-9*(1+math.Abs(s.Value)) {
					t.Errorf("%v, %s: %s is %v, want %v", c.task, what, s.Name, s.Value, want[i].Value)
				}
			}
		}
		raw, err := metric.Of(t.Context(), p, data)
		same("raw", raw, err, prediction, data.Y)
	}
}

func TestOfRefuses(t *testing.T) {
	p, data := linear(t, bayes.Gaussian{}, dataset.Regression)
	wide, bad := *data, *data
	wide.X, wide.Features = mat.NewDense(2500, 2, nil), []string{"a", "b"}
	bad.Y = append([]float64{math.NaN()}, data.Y[1:]...)
	classes, labelled := linear(t, bayes.Bernoulli{}, dataset.BinaryClassification)
	swapped := *labelled
	swapped.Classes = []string{"odd", "even"}
	numbers := *labelled // the same rows, read as a regression
	numbers.Task, numbers.Classes = dataset.Regression, nil
	for want, c := range map[string]struct {
		p    *bayes.Posterior
		data *dataset.Dataset
	}{"<nil>": {nil, data}, "both are needed": {p, nil}, "[2500, 2]": {p, &wide}, "row 0": {p, &bad},
		`"odd" is number 0`:  {classes, &swapped},
		"are for regression": {classes, &numbers}} {
		if _, err := metric.Of(t.Context(), c.p, c.data); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

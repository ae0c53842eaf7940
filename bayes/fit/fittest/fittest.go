// Package fittest has what the tests of several methods share: a fit that must succeed, a posterior as a list of
// numbers, and models whose posterior is known.
package fittest

import (
	"context"
	"errors"
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
)

// Fit is fit.Fit, with the details of type D of its result. An error fails the test.
func Fit[D any](
	t testing.TB, model bayes.Model, method fit.Method, parts dataset.Parts, settings run.Settings,
) (*fit.Result, D) {
	t.Helper()
	result, err := fit.Fit(t.Context(), model, method, parts, settings)
	if err != nil {
		t.Fatal(err)
	}
	return result, fit.Details[D](result)
}

// held is a method that hands over its job, and itself as Prepare makes it, before its first step.
type held struct {
	fit.Method
	seen func(j *fit.Job, prepared fit.Method)
}

var errHeld = errors.New("held before the first step")

func (h held) Takes() fit.Takes {
	if t, ok := h.Method.(fit.Taker); ok {
		return t.Takes()
	}
	return fit.Takes{}
}

func (h held) Prepare(j *fit.Job) (fit.Method, error) {
	prepared, err := h.Method.Prepare(j)
	return held{prepared, h.seen}, err
}

func (h held) Run(_ context.Context, j *fit.Job) (*fit.Result, error) {
	h.seen(j, h.Method)
	return nil, errHeld
}

// Job is the job of a method before its first step, and the method with its defaults filled in.
func Job[M fit.Method](
	t testing.TB, model bayes.Model, method M, parts dataset.Parts, settings run.Settings,
) (j *fit.Job, prepared M) {
	t.Helper()
	see := func(of *fit.Job, m fit.Method) { j, prepared = of, m.(M) }
	if _, err := fit.Fit(t.Context(), model, held{method, see}, parts, settings); !errors.Is(err, errHeld) {
		t.Fatal(err)
	}
	return j, prepared
}

// Numbers are all parameters of a posterior, shared ones too, and its log-weights.
func Numbers(t testing.TB, p *bayes.Posterior) []float64 {
	t.Helper()
	var all []float64
	for _, slot := range p.Bound().Slots {
		values, _, err := p.Parameter(slot.Name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, values...)
	}
	return append(all, p.LogWeights()...)
}

// Data is a regression on two correlated features whose posterior is far from symmetric in them.
func Data(rows int) *dataset.Dataset {
	d := &dataset.Dataset{Name: "line", Task: dataset.Regression, Features: []string{"a", "b"}, Target: "y",
		X: mat.NewDense(rows, 2, nil), Y: make([]float64, rows)}
	for i := range rows {
		a, e := math.Sin(1.7*float64(i)), math.Cos(2.9*float64(i))
		b := .8*a + .6*math.Sin(5.1*float64(i))
		d.X.(*mat.Dense).SetRow(i, []float64{a, b})
		d.Y[i] = 2*a - b + .3 + .7*e
	}
	return d
}

// Parts are three fifths of Data for training, and a fifth each for validation and test.
func Parts(t testing.TB, rows int) dataset.Parts {
	t.Helper()
	parts, err := Data(rows).Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// Line is y ~ N(w x + b, sd^2) with w and b stochastic: conjugate.
func Line(sd float64) bayes.Model {
	return bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All()}
}

// Raw is a model in the units of the data.
func Raw(m bayes.Model) bayes.Model {
	m.Scaling = bayes.Scaling{KeepFeatures: true, KeepTarget: true}
	return m
}

// Exact is Raw(Line(sd)) on these rows, for its exact posterior: the coordinates are w, then b.
func Exact(data *dataset.Dataset, sd float64) check.Linear {
	l := check.Linear{Y: data.Y, NoiseStdDev: sd}
	for i := range data.Rows() {
		l.X = append(l.X, append(mat.Row(nil, i, data.X), 1))
	}
	return l
}

// Harness is the regression of check.Line as a model and data, whose standardisation changes nothing.
func Harness() (bayes.Model, dataset.Parts, check.Linear) {
	l := check.Line()
	d := len(l.X[0]) - 1 // the last is the intercept's
	x := mat.NewDense(len(l.Y), d, nil)
	for n, row := range l.X {
		x.SetRow(n, row[:d])
	}
	data := &dataset.Dataset{Name: "line", X: x, Y: l.Y, Features: []string{"a", "b"}, Target: "y"}
	return Line(l.NoiseStdDev), dataset.Parts{Train: data}, l
}

// Small is a partial network that trains in a moment.
var Small = bayes.Model{Network: nn.MLP{Hidden: []int{5, 3}, Activation: nn.GELU},
	Likelihood: bayes.Gaussian{StdDev: .5}, Stochastic: bayes.Layers(2)}

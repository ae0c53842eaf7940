package particles_test

import (
	"context"
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/ohsmc"

	"gonum.org/v1/gonum/mat"
)

// small is a partial network that trains in a moment.
var small = bayes.Model{Network: nn.MLP{Hidden: []int{5, 3}, Activation: nn.GELU}, Likelihood: bayes.Gaussian{},
	Stochastic: bayes.Layers(2)}

// line is y ~ N(w x + b, sd^2) with w and b stochastic.
func line(sd float64) bayes.Model {
	return bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All()}
}

// linear is a regression on two correlated features.
func linear(rows int) *dataset.Dataset {
	d := &dataset.Dataset{Name: "linear", Task: dataset.Regression, Features: []string{"a", "b"}, Target: "y",
		X: mat.NewDense(rows, 2, nil), Y: make([]float64, rows)}
	for i := range rows {
		a, e := math.Sin(1.7*float64(i)), math.Cos(2.9*float64(i))
		b := .8*a + .6*math.Sin(5.1*float64(i))
		d.X.(*mat.Dense).SetRow(i, []float64{a, b})
		d.Y[i] = 2*a - b + .7*e
	}
	return d
}

// parts are 36, 12 and 12 rows.
func parts(t testing.TB) dataset.Parts {
	t.Helper()
	p, err := linear(60).Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// result is a run's result with its details.
type result struct {
	*fit.Result
	*particles.Details
}

// tried is fit.Fit with the result's details.
func tried(
	ctx context.Context, model bayes.Model, method fit.Method, parts dataset.Parts, settings run.Settings,
) (*result, error) {
	r, err := fit.Fit(ctx, model, method, parts, settings)
	if r == nil {
		return nil, err
	}
	return &result{r, fit.Details[*particles.Details](r)}, err
}

// trained is small trained by OpenHorizon, on the Go backend unless the settings name an engine: for what no engine can
// change.
func trained(t testing.TB, training particles.Training, settings run.Settings) *result {
	t.Helper()
	if settings.Engine == nil {
		settings.Engine = computetest.Go(t)
	}
	r, err := tried(context.Background(), small, ohsmc.OpenHorizon{Training: training}, parts(t), settings)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// numbers are all parameters and log-weights of a posterior.
func numbers(t testing.TB, p *bayes.Posterior) []float64 {
	t.Helper()
	var all []float64
	for _, slot := range p.Bound().Slots {
		v, _, err := p.Parameter(slot.Name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v...)
	}
	for j := range p.Particles() {
		all = append(all, p.LogWeights().At(j))
	}
	return all
}

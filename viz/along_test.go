package viz_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
	"gobnn/viz"

	"gonum.org/v1/gonum/mat"
)

// linear is a posterior of two particles of y = a x_1 + b x_2 + c, in the given task.
func linear(t *testing.T, likelihood bayes.Likelihood) *bayes.Posterior {
	t.Helper()
	bound, err := bayes.Model{Network: nn.MLP{}, Likelihood: likelihood, Stochastic: bayes.All()}.Bind(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	p, err := bayes.NewPosterior(bound, bayes.Draws{
		Phi: compute.Floats(compute.Float64, []float64{1, 2, 3, -1, 2, 3}, 2, 3), LogWeights: bayes.EqualLogWeights(2),
	}, bayes.Origin{
		Features: dataset.Scaler{Mean: []float64{1, 5}, StdDev: []float64{2, .5}}, Target: dataset.Scaler{Mean: []float64{3},
			StdDev: []float64{4}},
		FeatureNames: []string{"speed", "mass"}, TargetNames: []string{"force"}, Engine: engine,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The band along a feature is that of a grid by hand, with the other feature at its mean or where it is put.
func TestAlong(t *testing.T) {
	p := linear(t, bayes.Gaussian{StdDev: .1})
	data := &dataset.Dataset{X: mat.NewDense(3, 2, []float64{0, 4, 2, 6, 8, 5}), Y: []float64{1, 2, 3},
		Features: []string{"speed", "mass"}, Target: "force"}
	byHand := func(column int, at []float64, from, to float64, opt viz.BandOptions) string {
		const points = 50
		grid, xs := mat.NewDense(points, 2, nil), make([]float64, points)
		for i := range xs {
			xs[i] = from + (to-from)*float64(i)/(points-1)
			grid.SetRow(i, at)
			grid.Set(i, column, xs[i])
		}
		prediction, err := p.Predict(t.Context(), grid)
		if err != nil {
			t.Fatal(err)
		}
		fig, err := viz.PredictiveBandOf(xs, prediction, 20, opt)
		return svgOf(t, fig, err)
	}
	for i, c := range []struct {
		feature string
		opt     viz.AlongOptions
		want    string
	}{
		{"speed", viz.AlongOptions{}, byHand(0, []float64{1, 5}, -5, 7, viz.BandOptions{Frame: viz.Frame{XLabel: "speed",
			YLabel: "force"}})},
		{"mass", viz.AlongOptions{At: []float64{7, 0}, From: 1, To: 2}, byHand(1, []float64{7, 0}, 1, 2,
			viz.BandOptions{Frame: viz.Frame{XLabel: "mass", YLabel: "force"}})},
		{"speed", viz.AlongOptions{Data: data}, byHand(0, []float64{1, 5}, 0, 8, viz.BandOptions{
			Frame: viz.Frame{XLabel: "speed", YLabel: "force"}, TrainX: []float64{0, 2, 8}, TrainY: data.Y,
		})},
	} {
		c.opt.Points = 50
		fig, err := viz.Along(context.Background(), p, c.feature, c.opt)
		if got := svgOf(t, fig, err); got != c.want {
			t.Errorf("picture %d is another than that of a grid by hand", i)
		}
	}
}

func TestAlongRefuses(t *testing.T) {
	p := linear(t, bayes.Gaussian{})
	narrow := &dataset.Dataset{X: mat.NewDense(1, 1, nil), Y: []float64{1}, Features: []string{"a"}}
	for want, c := range map[string]struct {
		posterior *bayes.Posterior
		feature   string
		opt       viz.AlongOptions
	}{
		`"weight": the posterior has the features ["speed" "mass"]`: {p, "weight", viz.AlongOptions{}},
		"DecisionMapOf":             {linear(t, bayes.Bernoulli{}), "mass", viz.AlongOptions{}},
		"Points = 1":                {p, "mass", viz.AlongOptions{Points: 1}},
		"the point At has 1 values": {p, "mass", viz.AlongOptions{At: []float64{1}}},
		"from 3 to 1":               {p, "mass", viz.AlongOptions{From: 3, To: 1}},
		"the option Data has 1 features, the posterior 2": {p, "mass", viz.AlongOptions{Data: narrow}},
		"draws = -7": {p, "mass", viz.AlongOptions{Particles: -7}},
	} {
		if _, err := viz.Along(t.Context(), c.posterior, c.feature, c.opt); err == nil ||
			!strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

package fit_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// line is the linear model whose posterior given rows is Gaussian.
var line = bayes.Model{
	Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd},
	Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
}

// A method of a user's own has the exact mean and covariance of a Gaussian.
func TestOwnMethod(t *testing.T) {
	data := plane(40)
	method := SVGD{Training: particles.Training{Particles: 100, BatchSize: 40, Epochs: 750}, StepSize: .01}
	settings := run.Settings{Seed: 2, Engine: computetest.Go(t)}
	want := computetest.Must(fit.Fit(t.Context(), line, method, dataset.Parts{Train: data}, settings))
	precision, right := mat.NewSymDense(3, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}), mat.NewVecDense(3, nil)
	for n, y := range data.Y {
		x := mat.NewVecDense(3, []float64{data.X.At(n, 0), data.X.At(n, 1), 1})
		precision.SymRankOne(precision, 1/(sd*sd), x)
		right.AddScaledVec(right, y/(sd*sd), x)
	}
	var covariance mat.Dense
	var mean mat.VecDense
	if err := covariance.Inverse(precision); err != nil {
		t.Fatal(err)
	}
	mean.MulVec(&covariance, right)
	phi := particlesOf(t, want)
	for i := range 3 {
		var all []float64
		for j := i; j < len(phi); j += 3 {
			all = append(all, phi[j])
		}
		m, s := stat.MeanStdDev(all, nil)
		exact := math.Sqrt(covariance.At(i, i))
		if math.Abs(m-mean.AtVec(i)) > .02*exact || s/exact < .9 || s/exact > 1.1 {
			t.Errorf("coordinate %d: %.4f +- %.4f, exactly %.4f +- %.4f", i, m, s, mean.AtVec(i), exact)
		}
	}

	method.StepSize = -1
	_, err := fit.Fit(t.Context(), line, method, dataset.Parts{Train: data}, settings)
	computetest.WantError(t, "a negative step", err, "SVGD.StepSize is -1: it must be positive")
}

func particlesOf(t *testing.T, r *fit.Result) []float64 {
	t.Helper()
	d := computetest.Must(r.Posterior.Draws())
	phi := computetest.Must(compute.Float64s(d.Phi))
	return phi
}

// faulty is a method with a fault.
type faulty struct{ Fault string }

func (faulty) Title() string { return "faulty" }

func (f faulty) Prepare(*fit.Job) (fit.Method, error) {
	if f.Fault == "no method" {
		return nil, nil
	}
	return f, nil
}

func (f faulty) Run(_ context.Context, j *fit.Job) (*fit.Result, error) {
	switch f.Fault {
	case "nothing":
		return nil, nil
	case "no draws":
		return &fit.Result{Status: run.Completed}, nil
	}
	rows := 4
	if f.Fault == "shape" {
		return &fit.Result{Status: run.Completed, Draws: bayes.Draws{
			Phi: compute.Floats(j.DType, make([]float64, rows*2), rows, 2), LogWeights: bayes.EqualLogWeights(rows),
		}}, nil
	}
	return &fit.Result{Status: run.Completed, Draws: bayes.Draws{
		Phi: compute.Floats(j.DType, make([]float64, rows*3), rows, 3), LogWeights: bayes.EqualLogWeights(rows),
	}}, nil
}

// A method that breaks its promises is refused by name.
func TestFaultyMethods(t *testing.T) {
	for _, c := range []struct {
		method fit.Method
		says   string
	}{
		{nil, "there is no method: take one, such as auto.Method{}"},
		{faulty{"no method"}, "Prepare of fit_test.faulty gives no method"},
		{faulty{"nothing"}, "fit_test.faulty.Run gives neither a result nor an error"},
		{faulty{"no draws"}, "fit_test.faulty.Run has neither Draws nor a Posterior"},
		{faulty{"shape"}, "the draws of fit_test.faulty"},
	} {
		settings := run.Settings{Engine: computetest.Go(t)}
		result, err := fit.Fit(t.Context(), line, c.method, dataset.Parts{Train: plane(20)}, settings)
		computetest.WantError(t, fmt.Sprint(c.method), err, c.says)
		if result != nil {
			t.Errorf("%v: it has the result %+v", c.method, result)
		}
	}
	settings := run.Settings{Engine: computetest.Go(t)}
	nowhere := density.Problem{Dim: 1, Target: func(compute.Nodes, []*graph.Node) density.Target { return nil }}
	_, err := fit.Sample(t.Context(), nowhere, faulty{}, settings)
	computetest.WantError(t, "a density", err, "fit_test.faulty does not sample a log-density: take one")
	_, err = fit.Fit(t.Context(), bayes.Model{}, fit.From{Method: faulty{}}, dataset.Parts{}, settings)
	computetest.WantError(t, "a trained posterior", err, "fit_test.faulty does not continue a trained posterior: take a")
	if r, err := fit.Fit(t.Context(), line, faulty{}, dataset.Parts{Train: plane(20)}, settings); err != nil ||
		r.Posterior.Particles() != 4 || r.Elapsed <= 0 {
		t.Errorf("without a fault: %+v, %v", r, err)
	}
}

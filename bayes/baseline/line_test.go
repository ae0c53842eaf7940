package baseline

import (
	"fmt"
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// fitted is a fit that must succeed, on the Go backend unless the settings name an engine.
func fitted(
	t testing.TB, model bayes.Model, method fit.Method, parts dataset.Parts, settings run.Settings,
) (*fit.Result, *train.Details) {
	t.Helper()
	if settings.Engine == nil {
		settings.Engine = computetest.Go(t)
	}
	return fittest.Fit[*train.Details](t, model, method, parts, settings)
}

// trained trains a learner for a job, from a start if there is one.
func trained(
	t testing.TB, j *fit.Job, training Training, l train.Learner, start []float64,
) (*train.Details, *fit.Result) {
	t.Helper()
	r, err := train.Run(t.Context(), j, training, train.Task{
		Learner: l, Train: train.Of(j, j.Parts.Train), Validation: train.Of(j, j.Parts.Validation), Start: start,
	})
	if err != nil {
		t.Fatal(err)
	}
	return fit.Details[*train.Details](r), r
}

// The linear Gaussian model y ~ N(w'x + b, sd^2) with w ~ N(0, tau^2 I) stochastic and b shared, on 40 rows in raw
// units: everything about it is known.
const (
	sd, tau = .5, .3
	rows    = 40
)

var lineModel = bayes.Model{
	Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Prior: bayes.Normal{StdDev: tau},
	Stochastic: bayes.Names("layer1/weights"), Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
}

// ridge is the penalty of the prior, on each stochastic coordinate.
const ridge = 1 / (tau * tau)

// exactLine solves for (w_1, w_2, b) that maximises the likelihood, or with penalties, which are added to the diagonal
// of the precision, the posterior density; and gives the precision, [3, 3].
func exactLine(t testing.TB, data *dataset.Dataset, penalties ...float64) (mode []float64, precision *mat.SymDense) {
	t.Helper()
	precision, right := mat.NewSymDense(3, nil), mat.NewVecDense(3, nil)
	for n, y := range data.Y {
		row := mat.NewVecDense(3, []float64{data.X.At(n, 0), data.X.At(n, 1), 1})
		precision.SymRankOne(precision, 1/(sd*sd), row)
		right.AddScaledVec(right, y/(sd*sd), row)
	}
	for i, p := range penalties {
		precision.SetSym(i, i, precision.At(i, i)+p)
	}
	var out mat.VecDense
	if err := out.SolveVec(precision, right); err != nil {
		t.Fatal(err)
	}
	return out.RawVector().Data, precision
}

// inverse is the covariance of a precision.
func inverse(t testing.TB, precision mat.Symmetric) *mat.SymDense {
	t.Helper()
	var factor mat.Cholesky
	covariance := mat.NewSymDense(precision.SymmetricDim(), nil)
	if !factor.Factorize(precision) || factor.InverseTo(covariance) != nil {
		t.Fatal("the precision is not positive definite")
	}
	return covariance
}

// converging is a training in which full-batch Adam comes to rest.
var converging = Training{Epochs: 500, BatchSize: rows, Optimiser: train.Adam{Schedule: train.Exponential(.1, .5, 50)}}

func tolerance(dtype compute.DType) float64 {
	if dtype == compute.Float32 {
		return 2e-3
	}
	return 5e-4
}

// parameters are w and b of every particle, one after another.
func parameters(t testing.TB, p *bayes.Posterior) (w, b []float64) {
	t.Helper()
	w, _, err := p.Parameter("layer1/weights")
	if err != nil {
		t.Fatal(err)
	}
	if b, _, err = p.Parameter("layer1/biases"); err != nil {
		t.Fatal(err)
	}
	return w, b
}

// column is every stride-th number from the first.
func column(values []float64, stride, first int) []float64 {
	var out []float64
	for i := first; i < len(values); i += stride {
		out = append(out, values[i])
	}
	return out
}

// checkGaussian holds independent draws, flat, to the moments of a Gaussian, each within 5 standard errors: a false
// alarm of 6e-7, but seeds are fixed. The covariance of n pairs has variance (c^2 + v_1 v_2)/n.
func checkGaussian(t testing.TB, draws, mean []float64, covariance mat.Symmetric) {
	t.Helper()
	n, d := float64(len(draws)/len(mean)), len(mean)
	for i := range mean {
		own, v := column(draws, d, i), covariance.At(i, i)
		if z := (stat.Mean(own, nil) - mean[i]) * math.Sqrt(n/v); !(math.Abs(z) < 5) {
			t.Errorf("the mean of coordinate %d is off by %.1f standard errors of %v draws", i, z, n)
		}
		for k := range i + 1 {
			c, exact := stat.Covariance(own, column(draws, d, k), nil), covariance.At(i, k)
			if z := (c - exact) / math.Sqrt((exact*exact+v*covariance.At(k, k))/n); !(math.Abs(z) < 5) {
				t.Errorf("covariance of coordinates %d and %d is %.6f, want %.6f (z = %.1f)", i, k, c, exact, z)
			}
		}
	}
}

// checkNormal is checkGaussian in one dimension.
func checkNormal(t testing.TB, draws []float64, mean, s float64) {
	t.Helper()
	checkGaussian(t, draws, []float64{mean}, mat.NewSymDense(1, []float64{s * s}))
}

// classes is n rows in c classes by angle, which a network can half distinguish.
func classes(n, c int) *dataset.Dataset {
	d := fittest.Data(n)
	d.Name, d.Task, d.Classes = "angles", dataset.Classification, nil
	for k := range c {
		d.Classes = append(d.Classes, fmt.Sprint("class ", k))
	}
	if c == 2 {
		d.Task = dataset.BinaryClassification
	}
	for i := range d.Y {
		d.Y[i] = float64(int(math.Abs(1+1.6*d.X.At(i, 0)+.5*float64(i%3))) % c)
	}
	return d
}

// wavy is n different numbers, the same at each call.
func wavy(n int, frequency float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Sin(frequency * float64(i+1))
	}
	return v
}

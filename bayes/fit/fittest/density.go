package fittest

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
)

// Regression is conjugate, of D coordinates and N rows, with noise of standard deviation 1 and prior N(0, 1).
func Regression(d, n int, seed uint64) check.Linear {
	r := rand.New(rand.NewPCG(seed, 3))
	l := check.Linear{NoiseStdDev: 1}
	w := make([]float64, d)
	for i := range w {
		w[i] = r.NormFloat64()
	}
	for range n {
		x, y := make([]float64, d), r.NormFloat64()
		for i := range x {
			x[i] = r.NormFloat64()
			y += w[i] * x[i]
		}
		l.X, l.Y = append(l.X, x), append(l.Y, y)
	}
	return l
}

// Density is a regression's posterior as a density, with prior N(0, 1) and likelihood apart.
func Density(l check.Linear) density.Problem {
	d := len(l.X[0])
	return density.Problem{
		Name: "regression", Dim: d,
		Data:    map[string]*tensors.Tensor{"x": tensors.FromValue(l.X), "y": tensors.FromValue(l.Y)},
		Initial: Normal(d),
		Target: func(data compute.Nodes, _ []*graph.Node) density.Target {
			return smc.Posterior{
				Prior: func(phi *graph.Node) *graph.Node {
					square := graph.ReduceSum(graph.Square(phi), 1)
					return graph.AddScalar(graph.MulScalar(square, -.5), -float64(d)*math.Log(2*math.Pi)/2)
				},
				Likelihood: func(phi *graph.Node) *graph.Node {
					x := graph.ConvertDType(data["x"], phi.DType())
					y := graph.ConvertDType(data["y"], phi.DType())
					rest := graph.Sub(graph.Einsum("jd,nd->jn", phi, x), graph.ExpandAxes(y, 0))
					square := graph.ReduceSum(graph.Square(rest), 1)
					v, n := l.NoiseStdDev*l.NoiseStdDev, float64(len(l.Y))
					return graph.AddScalar(graph.MulScalar(square, -.5/v), -n*math.Log(2*math.Pi*v)/2)
				},
			}
		},
	}.Keyed("regression", d, l.NoiseStdDev, len(l.Y))
}

// Normal draws from N(0, 1) in d coordinates, for Problem.Initial.
func Normal(d int) func(rng random.Stream, dtype compute.DType, particles int) *graph.Node {
	return func(rng random.Stream, dtype compute.DType, particles int) *graph.Node {
		return rng.Normal(dtype, particles, d)
	}
}

// Sample is fit.Sample, with the details of type D of its result. An error fails the test.
func Sample[D any](
	t testing.TB, problem density.Problem, method fit.Method, settings run.Settings,
) (*fit.Result, D) {
	t.Helper()
	result, err := fit.Sample(t.Context(), problem, method, settings)
	if err != nil {
		t.Fatal(err)
	}
	return result, fit.Details[D](result)
}

// OffMean is the root mean square error of the draws' mean, in posterior standard deviations.
func OffMean(t testing.TB, draws bayes.Draws, l check.Linear) float64 {
	t.Helper()
	mean, covariance, _ := l.Posterior()
	phi, err := compute.Float64s(draws.Phi)
	if err != nil {
		t.Fatal(err)
	}
	weights, err := bayes.NewLogWeights(draws.LogWeights)
	if err != nil {
		t.Fatal(err)
	}
	d, sum := len(mean), 0.
	column := make([]float64, len(phi)/d)
	for i := range d {
		for j := range column {
			column[j] = phi[j*d+i]
		}
		e := (stat.Mean(column, weights.Weights()) - mean[i]) / math.Sqrt(covariance.At(i, i))
		sum += e * e / float64(d)
	}
	return math.Sqrt(sum)
}

// Says fails the test unless an error or a warning has all the words.
func Says(t testing.TB, what, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s: %q does not say %q", what, text, w)
		}
	}
}

// Refused fails the test unless there is an error that has all the words.
func Refused(t testing.TB, what string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	Says(t, what, err.Error(), words...)
}

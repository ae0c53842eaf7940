package annealed_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/pmcnet/annealed"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// regression is a conjugate one of D coordinates and N rows, with noise of standard deviation 1 and prior N(0, 1).
func regression(d, n int, seed uint64) check.Linear {
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

// problem is a regression's posterior.
func problem(l check.Linear) density.Problem {
	d := len(l.X[0])
	sd := l.PriorStdDev
	for len(sd) < d {
		sd = append(sd, 1)
	}
	return density.Problem{
		Name: "regression", Dim: d,
		Data: map[string]*tensors.Tensor{"x": tensors.FromValue(l.X), "y": tensors.FromValue(l.Y)},
		Initial: func(rng random.Stream, dtype compute.DType, particles int) *graph.Node {
			return rng.Normal(dtype, particles, d)
		},
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

// rms is the root mean square error of a result's mean, in posterior standard deviations.
func rms(t *testing.T, r *found, l check.Linear) float64 {
	t.Helper()
	mean, covariance, _ := l.Posterior()
	phi, err := compute.Float64s(r.Phi)
	if err != nil {
		t.Fatal(err)
	}
	d, sum := len(mean), 0.
	column, weights := make([]float64, len(phi)/d), r.LogWeights.Weights()
	for i := range d {
		for j := range column {
			column[j] = phi[j*d+i]
		}
		e := (stat.Mean(column, weights) - mean[i]) / math.Sqrt(covariance.At(i, i))
		sum += e * e / float64(d)
	}
	return math.Sqrt(sum)
}

// line is the harness's regression as a dataset, and as a model: a network without hidden layers.
func line(t *testing.T) (bayes.Model, dataset.Parts, check.Linear) {
	t.Helper()
	l := check.Line()
	d := len(l.X[0]) - 1 // the last is the intercept's
	x := mat.NewDense(len(l.Y), d, nil)
	for n, row := range l.X {
		x.SetRow(n, row[:d])
	}
	data := &dataset.Dataset{
		Name: "line", Task: bayes.Regression, X: x, Y: l.Y, Features: []string{"a", "b"}, Target: "y",
	}
	model := bayes.Model{ // Stochastic is All by default
		Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: l.NoiseStdDev}, Prior: bayes.Normal{StdDev: 1},
	}
	return model, dataset.Parts{Train: data}, l
}

func goSettings(t *testing.T) run.Settings {
	return run.Settings{Seed: 2, Engine: computetest.Go(t), DType: compute.Float64}
}

func numbers(t *testing.T, p *bayes.Posterior) []float64 {
	t.Helper()
	draws, err := p.Draws()
	if err != nil {
		t.Fatal(err)
	}
	phi, err := compute.Float64s(draws.Phi)
	if err != nil {
		t.Fatal(err)
	}
	return append(phi, draws.LogWeights...)
}

func says(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: the error %q does not say %q", what, err, w)
		}
	}
}

// holed is a problem whose density is nowhere above 0, or NaN beyond a bound.
func holed(bound float64) density.Problem {
	return density.Problem{
		Dim: 2,
		Initial: func(rng random.Stream, dtype compute.DType, particles int) *graph.Node {
			return rng.Normal(dtype, particles, 2)
		},
		Target: func(compute.Nodes, []*graph.Node) density.Target {
			return density.Func(func(phi *graph.Node) *graph.Node {
				first := graph.Squeeze(graph.Slice(phi, graph.AxisRange(), graph.AxisElem(0)), 1)
				beyond := graph.GreaterThan(first, graph.ConstAs(first, bound))
				nan := graph.Sqrt(graph.AddScalar(graph.MulScalar(first, 0), -1))
				return graph.Where(beyond, nan, graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5))
			})
		},
	}
}

// found is a result with its draws, and its weights' k-hat and effective sample size.
type found struct {
	*fit.Result
	Phi        *tensors.Tensor
	LogWeights bayes.LogWeights
	Evidence   bayes.Evidence
	KHat, ESS  float64
}

func find(r *fit.Result, err error) (*found, error) {
	if r == nil {
		return nil, err
	}
	d := r.Draws
	f := &found{Result: r, Phi: d.Phi, Evidence: d.Evidence, KHat: d.Diagnostics["k-hat"],
		ESS: d.Diagnostics["effective sample size"]}
	weights, failed := bayes.NewLogWeights(d.LogWeights)
	if failed != nil {
		return nil, failed
	}
	f.LogWeights = weights
	return f, err
}

// fitted is fit.Fit.
func fitted(
	ctx context.Context, model bayes.Model, a fit.Method, parts dataset.Parts, settings run.Settings,
) (*found, error) {
	return find(fit.Fit(ctx, model, a, parts, settings))
}

// sampled is fit.Sample.
func sampled(
	ctx context.Context, problem density.Problem, a fit.Method, settings run.Settings,
) (*found, error) {
	return find(fit.Sample(ctx, problem, a, settings))
}

// estimates are a result's details.
func estimates(r *found) *annealed.Details { return fit.Details[*annealed.Details](r.Result) }

package pmcnet_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/smc"
	"gobnn/pmcnet"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
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
func problem(l check.Linear) mcmc.Problem {
	d := len(l.X[0])
	sd := l.PriorStdDev
	for len(sd) < d {
		sd = append(sd, 1)
	}
	return mcmc.Problem{
		Name: "regression", Dim: d,
		Data: map[string]*tensors.Tensor{"x": tensors.FromValue(l.X), "y": tensors.FromValue(l.Y)},
		Initial: func(rng random.Stream, dtype compute.DType, particles int) *graph.Node {
			return rng.Normal(dtype, particles, d)
		},
		Target: func(data compute.Nodes, _ []*graph.Node) mcmc.Target {
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
	}
}

// rms is the root mean square error of a result's mean, in posterior standard deviations.
func rms(t *testing.T, r *pmcnet.Result, l check.Linear) float64 {
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

func TestConjugate(t *testing.T) {
	l := regression(5, 100, 1)
	_, _, want := l.Posterior()
	engine := computetest.Go(t)
	for _, c := range []struct {
		name string
		a    pmcnet.PMC
	}{
		{"full", pmcnet.PMC{}},
		{"diagonal", pmcnet.PMC{Covariance: pmcnet.DiagonalCovariance}},
		{"low rank", pmcnet.PMC{Covariance: pmcnet.LowRankCovariance, Rank: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := pmcnet.Sample(t.Context(), problem(l), c.a,
				pmcnet.Settings{Seed: 1, Engine: engine, DType: compute.Float64})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("rms %.3f, log Z %.4f +- %.4f, exact %.4f, ESS %.0f, k-hat %.2f, %v %v", rms(t, r, l), r.Evidence.Value,
				r.Evidence.StdErr, want, r.ESS, r.KHat, r.Elapsed, r.Warnings)
			for _, it := range r.Trace {
				t.Logf("%+v", it)
			}
		})
	}
}

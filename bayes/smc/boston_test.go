package smc_test

import (
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"gonum.org/v1/gonum/mat"
)

// The benchmark is that of Javid, Handley, Hobson and Lasenby (2020): ten halves of boston, features and target
// standardised by the training half, a Gaussian likelihood of variance 1, and the prior N(0, 1) for every weight and
// bias.

// linearBoston are the log evidences of the network without hidden layers, a linear model, for the ten splits.
var linearBoston = []float64{
	-301.397, -303.961, -299.375, -299.267, -297.496, -292.612, -292.517, -298.532, -304.865, -298.179,
}

// boston is the training half of a split, with a network to sample.
func boston(t *testing.T, split int, network nn.MLP) *fit.Data {
	t.Helper()
	parts, err := dataset.MustLoad("boston").PublishedSplit(dataset.Javid, split)
	if err != nil {
		t.Fatal(err)
	}
	model := bayes.Model{Network: network, Likelihood: bayes.Gaussian{StdDev: 1}, Stochastic: bayes.All()}
	data, err := fit.New("smc", model, parts)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// bostonProblem is the posterior of it, for so many particles.
func bostonProblem(t *testing.T, engine *compute.Engine, data *fit.Data, particles int) density.Problem {
	t.Helper()
	x, y, err := data.Tensors(compute.Float32, data.Parts.Train)
	if err != nil {
		t.Fatal(err)
	}
	problem, err := density.NewProblem(engine, data.Bound, x, y, nil, particles, 1)
	if err != nil {
		t.Fatal(err)
	}
	return problem
}

// linearEvidence is log N(y; 0, 1 + X X' + I), by Cholesky.
func linearEvidence(t *testing.T, data *fit.Data) float64 {
	t.Helper()
	x, y, err := data.Tensors(compute.Float64, data.Parts.Train)
	if err != nil {
		t.Fatal(err)
	}
	flat, err := compute.Float64s(x)
	if err != nil {
		t.Fatal(err)
	}
	targets, err := compute.Float64s(y)
	if err != nil {
		t.Fatal(err)
	}
	n := len(targets)
	var covariance mat.SymDense
	covariance.SymOuterK(1, mat.NewDense(n, len(flat)/n, flat))
	for i := range n {
		for j := range i + 1 {
			covariance.SetSym(i, j, covariance.At(i, j)+1) // the bias
		}
		covariance.SetSym(i, i, covariance.At(i, i)+1) // the noise
	}
	var cholesky mat.Cholesky
	if !cholesky.Factorize(&covariance) {
		t.Fatal("the covariance is not positive definite")
	}
	var solved mat.VecDense
	right := mat.NewVecDense(n, targets)
	if err := cholesky.SolveVecTo(&solved, right); err != nil {
		t.Fatal(err)
	}
	return -.5 * (mat.Dot(right, &solved) + cholesky.LogDet() + float64(n)*math.Log(2*math.Pi))
}

// Of the benchmark's linear model the evidence is known, by Cholesky in agreement with the published table, and SMC
// finds it for a split that decides the mean: within 4.5 of the standard errors that the run itself states. Over 60
// runs with other seeds such z-scores had the mean .07 and the standard deviation 1.08: a normal of that kind is a
// false alarm of 3e-5. The whole benchmark is the study pmcnet.evidence.
func TestEvidenceOfBoston(t *testing.T) {
	for split, want := range linearBoston {
		if got := linearEvidence(t, boston(t, split, nn.MLP{})); math.Abs(got-want) > .001 {
			t.Errorf("split %d: the exact log evidence is %.4f, published %.3f", split, got, want)
		}
	}
	if testing.Short() {
		return
	}
	const particles, split = 500, 5
	engine := computetest.Go(t)
	data := boston(t, split, nn.MLP{})
	r, err := fit.Sample(t.Context(), bostonProblem(t, engine, data, particles),
		smc.Tempered{Kernel: mcmc.HMC{Steps: 5}, Particles: particles, Moves: 3},
		run.Settings{Seed: split, Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	exact := linearEvidence(t, data)
	found := r.Draws.Evidence
	z := (found.Value - exact) / found.StdErr
	if !(math.Abs(z) < 4.5) || found.StdErr > .5 {
		t.Errorf("split %d: log evidence %.3f +- %.3f, exact %.3f", split, found.Value, found.StdErr, exact)
	}
}

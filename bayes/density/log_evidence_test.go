package density_test

import (
	"math"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/nn"
	"gobnn/bayes/smc"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
)

// On Bayesian linear regression the log evidence from weighted prior particles lies within its stated standard error of
// the analytic one: over 100 seeds the share within one, two and three standard errors must be that of a normal to
// within four binomial standard deviations (false alarm below 2e-4; the seeds are fixed).
func TestLogEvidenceOfLinearRegression(t *testing.T) {
	const n, j, sd = 6, 4000, .8
	x, y := make([][]float64, n), make([]float64, n)
	for i := range n {
		x[i] = []float64{math.Sin(1.3 * float64(i)), math.Cos(2.1 * float64(i))}
		y[i] = .7*x[i][0] - .4*x[i][1] + .3 + .5*math.Sin(float64(5*i))
	}
	exact := linearRegressionEvidence(x, y, sd)
	bound := computetest.Must(bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd},
		Stochastic: bayes.All()}.Bind(2, 1))
	plan := compute.NewPlan(j, 1, 0)
	likelihood := density.Likelihood{Model: bound, Plan: plan}
	_, whole := density.At(density.Full(likelihood), nil, density.Batch{}).(smc.Factored)
	_, part := density.At(density.MiniBatch(likelihood, 2*n), nil, density.Batch{}).(smc.Factored)
	if !whole || part {
		t.Errorf("the posterior of all rows can be tempered: %v, and that of mini-batches: %v", whole, part)
	}
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		exec := computetest.Must(NewExec(engine.Backend(), func(seed, x, y *Node) *Node {
			phi := bound.SamplePrior(random.FromKey(seed), dtype, j)
			batch := density.Batch{X: ConvertDType(x, dtype), Y: ConvertDType(y, dtype)}
			return ConvertDType(likelihood.LogLikelihood(phi, nil, batch), compute.Float64)
		}))
		defer exec.Finalize()
		var within [3]float64
		for seed := range uint64(100) {
			out := computetest.Must(exec.Call(random.KeyOf(seed+1).Words(), x, y))
			logLik := computetest.Must(compute.Float64s(out[0]))
			value, se := smc.LogEvidence(logLik)
			for k := range within {
				if math.Abs(value-exact) <= float64(k+1)*se {
					within[k]++
				}
			}
		}
		t.Logf("of 100 seeds within 1, 2, 3 standard errors: %v", within)
		for k, p := range []float64{.6827, .9545, .9973} {
			if sd := math.Sqrt(100 * p * (1 - p)); math.Abs(within[k]-100*p) > 4*sd {
				t.Errorf("%v of 100 within %d standard errors, want %.1f +- %.1f", within[k], k+1, 100*p, 4*sd)
			}
		}
	})
}

// linearRegressionEvidence is log N(y; 0, s^2 I + X X' + 1 1') for a standard normal prior on weights and bias, by
// elimination.
func linearRegressionEvidence(x [][]float64, y []float64, sd float64) float64 {
	n := len(y)
	c := make([][]float64, n)
	for i := range c {
		c[i] = make([]float64, n)
		for k := range c[i] {
			c[i][k] = floats.Dot(x[i], x[k]) + 1
		}
		c[i][i] += sd * sd
	}
	rest := slices.Clone(y)
	logDensity := -float64(n) / 2 * math.Log(2*math.Pi)
	for i := range n { // C = L D L'; density is a product of conditionals
		for k := i + 1; k < n; k++ {
			f := c[k][i] / c[i][i]
			for l := i; l < n; l++ {
				c[k][l] -= f * c[i][l]
			}
			rest[k] -= f * rest[i]
		}
		logDensity -= .5*math.Log(c[i][i]) + rest[i]*rest[i]/(2*c[i][i])
	}
	return logDensity
}

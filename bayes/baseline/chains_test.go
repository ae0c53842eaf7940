package baseline

import (
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// MAP-HMC draws from the exact posterior: that of w at the b of MAP, and where all are stochastic that of w and b, all
// with the prior.
func TestChainsAreExact(t *testing.T) {
	data := fittest.Data(rows)
	method := MAPHMC{Training: converging, Chains: mcmc.Chains{
		Kernel: mcmc.HMC{StepSize: .05, Steps: 8, Jitter: .3}, Chains: 50, Draws: 40, WarmUp: 20}}
	draws := func(model bayes.Model) (*bayes.Posterior, *mcmc.Draws) {
		result, _ := fitted(t, model, method, dataset.Parts{Train: data}, run.Settings{DType: compute.Float64})
		return result.Posterior, fit.Details[*mcmc.Details](result).Draws
	}
	mean, precision := exactLine(t, data, ridge, ridge)
	covariance := inverse(t, precision.SliceSym(0, 2))
	posterior, of := draws(lineModel)
	_, b := parameters(t, posterior)
	computetest.Near(t, "bias", b, mean[2:], tolerance(compute.Float64))
	for i := range 2 {
		holdChains(t, "MAP-HMC", of.Coordinate(i), mean[i], math.Sqrt(covariance.At(i, i)))
	}

	whole := lineModel
	whole.Stochastic = bayes.All()
	mean, precision = exactLine(t, data, ridge, ridge, ridge)
	covariance = inverse(t, precision)
	_, of = draws(whole)
	for i := range 3 {
		holdChains(t, "all", of.Coordinate(i), mean[i], math.Sqrt(covariance.At(i, i)))
	}
}

// Chains begin where MAP ends, here with steps too small to leave it, in a network of which one layer is stochastic:
// each parameter has its place.
func TestChainsBeginAtTheMode(t *testing.T) {
	data := dataset.Parts{Train: fittest.Data(rows)}
	model := bayes.Model{Network: nn.MLP{Hidden: []int{3, 2}}, Likelihood: bayes.Gaussian{Learn: true},
		Stochastic: bayes.Layers(2)}
	training, settings := Training{Epochs: 20}, run.Settings{DType: compute.Float64}
	mode, _ := fitted(t, model, MAP{training}, data, settings)
	still := mcmc.Chains{Kernel: mcmc.HMC{StepSize: 1e-12, Steps: 1}, Chains: 1, Draws: 1, WarmUp: 1}
	result, details := fitted(t, model, MAPHMC{Training: training, Chains: still}, data, settings)
	computetest.Near(t, "from the mode", fittest.Numbers(t, result.Posterior), fittest.Numbers(t, mode.Posterior), 1e-9)
	if len(details.Trace) != 20 {
		t.Errorf("%d steps of training are recorded, want 20", len(details.Trace))
	}
}

// holdChains holds chains to a mean and a standard deviation within 5 standard errors, taken from the spread of the
// chains' own means and mean squares, which are independent: with 50 chains Student's t with 49 degrees of freedom, a
// false alarm of 8e-6.
func holdChains(t testing.TB, what string, chains [][]float64, mean, s float64) {
	t.Helper()
	var means, squares []float64
	for _, chain := range chains {
		sum, square := 0.0, 0.0
		for _, x := range chain {
			sum += (x - mean) / s
			square += (x - mean) * (x - mean) / (s * s)
		}
		means, squares = append(means, sum/float64(len(chain))), append(squares, square/float64(len(chain)))
	}
	root := math.Sqrt(float64(len(chains)))
	m, e := stat.MeanStdDev(means, nil)
	if z := m / (e / root); math.Abs(z) > 5 || e/root > .1 {
		t.Errorf("%s: mean is off by %.3f standard deviations, standard error %.3f", what, m, e/root)
	}
	m, e = stat.MeanStdDev(squares, nil)
	if z := (m - 1) / (e / root); math.Abs(z) > 5 || e/root > .15 {
		t.Errorf("%s: variance is %.3f times the exact one, standard error %.3f", what, m, e/root)
	}
}

// With one weight and all rows in the batch SGLD is the unadjusted Langevin algorithm: its stationary variance is v /
// (1 - e/(4 v)) for a posterior of variance v and step size e, the noise's variance (package mcmc); at e = v that is a
// third more. From mini-batches the mean stays.
func TestSGLDAndSGHMC(t *testing.T) {
	data := fittest.Data(rows)
	data.X, data.Features = mat.NewDense(rows, 1, mat.Col(nil, 0, data.X)), data.Features[:1]
	sx, sxx, sy, sxy := 0.0, 0.0, 0.0, 0.0
	for n, y := range data.Y {
		x := data.X.At(n, 0)
		sx, sxx, sy, sxy = sx+x, sxx+x*x, sy+y, sxy+x*y
	}
	variance := 1 / (sxx/(sd*sd) + 1/(tau*tau))
	mean := (sxy - sx*sy/rows) / (sxx - sx*sx/rows + sd*sd/(tau*tau)) // of w, at the b of MAP
	all := converging
	quarter := all
	quarter.BatchSize = rows / 4
	for _, c := range []struct {
		name     string
		method   fit.Method
		variance float64 // 0: not checked
	}{
		{"SGLD", SGLD{Training: all, StepSize: variance,
			Chains: mcmc.Chains{Chains: 50, Draws: 80, WarmUp: 50, Thin: 5}}, variance / .75},
		{"SGLD from mini-batches", SGLD{Training: quarter, StepSize: .1 * variance,
			Chains: mcmc.Chains{Chains: 50, Draws: 80, WarmUp: 200, Thin: 12}}, 0},
		{"SGHMC", SGHMC{Training: all, LearningRate: .01 * variance,
			Chains: mcmc.Chains{Chains: 50, Draws: 80, WarmUp: 500, Thin: 25}}, variance},
	} {
		result, _ := fitted(t, lineModel, c.method, dataset.Parts{Train: data}, run.Settings{DType: compute.Float64})
		draws := fit.Details[*mcmc.Details](result).Draws.Coordinate(0)
		if c.variance > 0 {
			holdChains(t, c.name, draws, mean, math.Sqrt(c.variance))
			continue
		}
		// All chains have the same mini-batches, so their errors are not independent: the mean is held to a fifth of a
		// standard deviation.
		all := 0.0
		for _, chain := range draws {
			all += stat.Mean(chain, nil) / float64(len(draws))
		}
		if math.Abs(all-mean) > .2*math.Sqrt(variance) {
			t.Errorf("%s: mean %.4f, want %.4f, with a standard deviation of %.4f", c.name, all, mean, math.Sqrt(variance))
		}
	}
}

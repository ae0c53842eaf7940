package baseline

import (
	"errors"
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// MAP-HMC draws from the exact posterior: that of w at the b of MAP, and where all are stochastic that of w and b, all
// with the prior.
func TestChainsAreExact(t *testing.T) {
	data := line(rows)
	settings := converging(goEngine(t), compute.Float64)
	mode, precision := exactLine(t, data, ridge)
	var covariance mat.Dense
	if err := covariance.Inverse(precision); err != nil {
		t.Fatal(err)
	}
	kernel := mcmc.HMC{StepSize: .05, Steps: 8, Jitter: .3}
	method := MAPHMC{Chains: mcmc.Chains{Kernel: kernel, Chains: 50, Draws: 40, WarmUp: 20}}
	result := fitted(t, lineModel, method, dataset.Parts{Train: data}, settings)
	if result.Chains == nil || result.Posterior.Particles() != 2000 {
		t.Fatalf("%d particles", result.Posterior.Particles())
	}
	w, b := parameters(t, result.Posterior)
	computetest.Near(t, "bias", b, mode[2:], tolerance(compute.Float64))
	for i := range 2 {
		holdChains(t, "MAP-HMC", result.Chains.Draws.Coordinate(i), mode[i], math.Sqrt(covariance.At(i, i)))
	}
	if len(w) != 4000 {
		t.Errorf("%d weights", len(w))
	}

	// All three with the prior: the posterior mean solves with the penalty on b too.
	gram, right := mat.NewSymDense(3, nil), mat.NewVecDense(3, nil)
	for n, y := range data.Y {
		row := mat.NewVecDense(3, []float64{data.X.At(n, 0), data.X.At(n, 1), 1})
		gram.SymRankOne(gram, 1/(sd*sd), row)
		right.AddScaledVec(right, y/(sd*sd), row)
	}
	for i := range 3 {
		gram.SetSym(i, i, gram.At(i, i)+1/(tau*tau))
	}
	var mean mat.VecDense
	covariance.Reset()
	if err := covariance.Inverse(gram); err != nil {
		t.Fatal(err)
	}
	mean.MulVec(&covariance, right)
	whole := lineModel
	whole.Stochastic = bayes.All()
	result = fitted(t, whole, method, dataset.Parts{Train: data}, settings)
	for i := range 3 {
		holdChains(t, "all", result.Chains.Draws.Coordinate(i), mean.AtVec(i), math.Sqrt(covariance.At(i, i)))
	}
}

// Chains begin where MAP ends, here with steps too small to leave it, in a network of which one layer is stochastic:
// each parameter has its place.
func TestChainsBeginAtTheMode(t *testing.T) {
	data := line(rows)
	model := bayes.Model{Network: nn.MLP{Hidden: []int{3, 2}}, Likelihood: bayes.Gaussian{Learn: true},
		Stochastic: bayes.Layers(2)}
	settings := Settings{Epochs: 20, Engine: goEngine(t), DType: compute.Float64}
	want := numbers(t, fitted(t, model, MAP{}, dataset.Parts{Train: data}, settings).Posterior)
	still := MAPHMC{Chains: mcmc.Chains{Kernel: mcmc.HMC{StepSize: 1e-12, Steps: 1}, Chains: 1, Draws: 1, WarmUp: 1}}
	result := fitted(t, model, still, dataset.Parts{Train: data}, settings)
	computetest.Near(t, "from the mode", numbers(t, result.Posterior), want, 1e-9)
	if len(result.Trace) != 20 {
		t.Errorf("%d steps of training are recorded, want 20", len(result.Trace))
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
	data := line(rows)
	data.X, data.Features = mat.NewDense(rows, 1, mat.Col(nil, 0, data.X)), data.Features[:1]
	sx, sxx, sy, sxy := 0.0, 0.0, 0.0, 0.0
	for n, y := range data.Y {
		x := data.X.At(n, 0)
		sx, sxx, sy, sxy = sx+x, sxx+x*x, sy+y, sxy+x*y
	}
	variance := 1 / (sxx/(sd*sd) + 1/(tau*tau))
	mean := (sxy - sx*sy/rows) / (sxx - sx*sx/rows + sd*sd/(tau*tau)) // of w, at the b of MAP
	settings := converging(goEngine(t), compute.Float64)
	for _, c := range []struct {
		name     string
		method   fit.Method
		batch    int
		variance float64 // 0: not checked
	}{
		{"SGLD", SGLD{StepSize: variance, Chains: mcmc.Chains{Chains: 50, Draws: 80, WarmUp: 50, Thin: 5}}, rows,
			variance / .75},
		{"SGLD from mini-batches", SGLD{StepSize: .1 * variance,
			Chains: mcmc.Chains{Chains: 50, Draws: 80, WarmUp: 200, Thin: 12}}, rows / 4, 0},
		{"SGHMC", SGHMC{LearningRate: .01 * variance, Chains: mcmc.Chains{Chains: 50, Draws: 80, WarmUp: 500, Thin: 25}},
			rows, variance},
	} {
		settings.BatchSize, settings.Epochs = c.batch, 500
		result := fitted(t, lineModel, c.method, dataset.Parts{Train: data}, settings)
		draws := result.Chains.Draws.Coordinate(0)
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

// Chains that go to where the density is not finite are an error, not a posterior.
func TestChainsDiverge(t *testing.T) {
	parts := dataset.Parts{Train: line(40)}
	chains := mcmc.Chains{Chains: 3, Draws: 2, WarmUp: 50, Thin: 25}
	for _, method := range []fit.Method{SGLD{StepSize: 1e4, Chains: chains}, SGHMC{LearningRate: 1e4, Chains: chains}} {
		_, err := Fit(t.Context(), small, method, parts, Settings{Epochs: 2, BatchSize: 8, Engine: goEngine(t)})
		if !errors.Is(err, ErrDiverged) {
			t.Errorf("%s: error %v, want ErrDiverged", nameOf(method), err)
		}
	}
}

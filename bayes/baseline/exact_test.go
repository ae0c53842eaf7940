package baseline

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/optim"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// The linear Gaussian model y ~ N(w'x + b, sd^2) with w ~ N(0, tau^2 I) stochastic and b shared, on 40 rows in raw units: everything about it is known.
const (
	sd, tau = .5, .3
	rows    = 40
)

var lineModel = bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Prior: bayes.Normal{StdDev: tau}, Stochastic: bayes.Weights(1)}

// exactLine solves for (w_1, w_2, b) that maximises the likelihood, or with the prior on w the posterior density, where penalty, [2], is added to the diagonal of
// w's precision; and gives w's precision at a known b, [2, 2].
func exactLine(t testing.TB, data *dataset.Dataset, penalty [2]float64) (solution []float64, precision *mat.SymDense) {
	t.Helper()
	design := mat.NewDense(data.Rows(), 3, nil)
	for n := range data.Y {
		design.SetRow(n, []float64{data.X.At(n, 0), data.X.At(n, 1), 1})
	}
	var gram mat.SymDense
	gram.SymOuterK(1/(sd*sd), design.T())
	for i, p := range penalty {
		gram.SetSym(i, i, gram.At(i, i)+p)
	}
	right := mat.NewVecDense(3, nil)
	right.MulVec(design.T(), mat.NewVecDense(data.Rows(), data.Y))
	right.ScaleVec(1/(sd*sd), right)
	var out mat.VecDense
	if err := out.SolveVec(&gram, right); err != nil {
		t.Fatal(err)
	}
	return out.RawVector().Data, mat.NewSymDense(2, []float64{gram.At(0, 0), gram.At(0, 1), gram.At(0, 1), gram.At(1, 1)})
}

// ridge is the penalty of the prior.
var ridge = [2]float64{1 / (tau * tau), 1 / (tau * tau)}

// converging are settings under which full-batch Adam comes to rest.
func converging(engine *compute.Engine, dtype compute.DType) Settings {
	return Settings{
		Epochs: 500, BatchSize: rows, Unscaled: true, Engine: engine, DType: dtype, Optimiser: optim.Adam{Schedule: optim.Exponential(.1, .5, 50)},
	}
}

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

// MLE is least squares; MAP is ridge regression with an intercept that is not penalised; so is each member of an ensemble.
func TestPointsAreExact(t *testing.T) {
	data := line(rows)
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, c := range []struct {
			method  Method
			penalty [2]float64
		}{{MLE{}, [2]float64{}}, {MAP{}, ridge}, {Ensemble{Members: 3}, ridge}, {Ensemble{Members: 2, Likelihood: true}, [2]float64{}}} {
			want, _ := exactLine(t, data, c.penalty)
			result := fit(t, lineModel, c.method, dataset.Parts{Train: data}, converging(engine, dtype))
			w, b := parameters(t, result.Posterior)
			for j := range result.Posterior.Particles() {
				computetest.Near(t, c.method.Name(), append(w[2*j:2*j+2:2*j+2], b[j]), want, tolerance(dtype))
			}
		}
	})
}

// From mini-batches of a quarter of the rows MAP comes to the same ridge solution, up to noise that falls with the learning rate: without the
// factor N/n the prior would count four times as much, which moves w by more than .1.
func TestMiniBatchesStandForAllRows(t *testing.T) {
	data := line(rows)
	settings := converging(goEngine(t), compute.Float64)
	settings.BatchSize, settings.Optimiser.Schedule = rows/4, optim.Exponential(.1, .5, 200)
	want, _ := exactLine(t, data, ridge)
	wrong, _ := exactLine(t, data, [2]float64{4 * ridge[0], 4 * ridge[1]})
	if math.Abs(wrong[0]-want[0]) < .1 {
		t.Fatal("the data does not tell")
	}
	w, b := parameters(t, fit(t, lineModel, MAP{}, dataset.Parts{Train: data}, settings).Posterior)
	computetest.Near(t, "MAP from mini-batches", append(w, b...), want, .01)
}

// The best mean-field normal of a Gaussian has its mean, the ridge solution, and the inverse of its precision's diagonal as variances. Each step has 100
// draws and the learning rate falls to a thousandth, so that what is left of the noise is under one percent.
func TestVIIsMeanFieldOptimum(t *testing.T) {
	data := line(rows)
	want, precision := exactLine(t, data, ridge)
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		trainer := NewTrainer(lineModel)
		defer trainer.Close()
		settings := converging(engine, dtype)
		method := VI{Draws: 100, Samples: 4000}
		j, err := trainer.newJob(method, dataset.Parts{Train: data}, settings)
		if err != nil {
			t.Fatal(err)
		}
		l, err := j.newSampled(meanField{j.method.(VI), j.bound, dtype}, 100, 4000)
		if err != nil {
			t.Fatal(err)
		}
		fitted, err := j.train(context.Background(), j.training(l))
		if err != nil {
			t.Fatal(err)
		}
		computetest.Near(t, "mean", fitted.theta[:2], want[:2], .01)
		computetest.Near(t, "shared bias", fitted.theta[4:], want[2:], .01)
		p, err := l.posterior(j, fitted.theta)
		if err != nil {
			t.Fatal(err)
		}
		w, _ := parameters(t, p)
		for i := range 2 {
			s := 1 / math.Sqrt(precision.At(i, i))
			if got := math.Log1p(math.Exp(fitted.theta[2+i])); math.Abs(got/s-1) > .02 {
				t.Errorf("standard deviation of weight %d is %.5f, want %.5f", i, got, s)
			}
			checkMoments(t, column(w, 2, i), fitted.theta[i], math.Log1p(math.Exp(fitted.theta[2+i])))
		}
	})
}

// column is every stride-th number from the first.
func column(values []float64, stride, first int) []float64 {
	var out []float64
	for i := first; i < len(values); i += stride {
		out = append(out, values[i])
	}
	return out
}

// checkMoments holds independent normal draws to a mean and a standard deviation, each within 4.5 standard errors: a false alarm of 7e-6, but seeds are
// fixed.
func checkMoments(t testing.TB, draws []float64, mean, s float64) {
	t.Helper()
	n := float64(len(draws))
	m, v := stat.MeanVariance(draws, nil)
	if z := (m - mean) / (s / math.Sqrt(n)); math.Abs(z) > 4.5 {
		t.Errorf("mean of %d draws is %.5f, want %.5f (z = %.1f)", len(draws), m, mean, z)
	}
	if z := (v/(s*s) - 1) / math.Sqrt(2/(n-1)); math.Abs(z) > 4.5 {
		t.Errorf("variance of %d draws is %.6f, want %.6f (z = %.1f)", len(draws), v, s*s, z)
	}
}

// Laplace with a full precision is the exact posterior of w at the shared b: its mean, and its covariance, the inverse of the precision. The diagonal one has
// the inverse of the precision's diagonal as variances.
func TestLaplaceIsExact(t *testing.T) {
	data := line(rows)
	want, precision := exactLine(t, data, ridge)
	var covariance mat.Dense
	if err := covariance.Inverse(precision); err != nil {
		t.Fatal(err)
	}
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, structure := range []Structure{FullPrecision, DiagonalPrecision, LastLayerPrecision} {
			result := fit(t, lineModel, Laplace{Structure: structure, Samples: 4000}, dataset.Parts{Train: data}, converging(engine, dtype))
			w, b := parameters(t, result.Posterior)
			computetest.Near(t, "bias", b, want[2:], tolerance(dtype))
			first, second := column(w, 2, 0), column(w, 2, 1)
			c := stat.Covariance(first, second, nil)
			if structure == DiagonalPrecision {
				checkMoments(t, first, want[0], 1/math.Sqrt(precision.At(0, 0)))
				checkMoments(t, second, want[1], 1/math.Sqrt(precision.At(1, 1)))
				if bound := 4.5 / math.Sqrt(4000*precision.At(0, 0)*precision.At(1, 1)); math.Abs(c) > bound {
					t.Errorf("covariance of a diagonal Laplace is %.6f, beyond %.6f", c, bound)
				}
				continue
			}
			checkMoments(t, first, want[0], math.Sqrt(covariance.At(0, 0)))
			checkMoments(t, second, want[1], math.Sqrt(covariance.At(1, 1)))
			// The covariance of n normal pairs has variance (c^2 + v_1 v_2)/n.
			exact := covariance.At(0, 1)
			if z := (c - exact) / math.Sqrt((exact*exact+covariance.At(0, 0)*covariance.At(1, 1))/4000); math.Abs(z) > 4.5 {
				t.Errorf("%s: covariance %.6f, want %.6f (z = %.1f)", structure, c, exact, z)
			}
		}
	})
}

// The dropout objective of a linear model is that of ridge regression in expectation: with masks z/(1-p) on the inputs,
//
//	E = -sum_n [(y_n - w'x_n - b)^2 + p/(1-p) sum_i w_i^2 x_ni^2] / (2 sd^2) - sum_i w_i^2 / (2 tau^2 (1-p)) + constant,
//
// so the penalty on w_i^2/2 is p/(1-p) sum_n x_ni^2 / sd^2 + 1/(tau^2 (1-p)). With 400 masks a step, and a falling learning rate, training comes to it.
func TestDropoutIsRidge(t *testing.T) {
	const rate = .3
	data := line(rows)
	var penalty [2]float64
	for i := range penalty {
		penalty[i] = 1 / (tau * tau * (1 - rate))
		for n := range data.Y {
			penalty[i] += rate / (1 - rate) * data.X.At(n, i) * data.X.At(n, i) / (sd * sd)
		}
	}
	want, _ := exactLine(t, data, penalty)
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		result := fit(t, lineModel, Dropout{Rate: rate, Masks: 400, Samples: 2000}, dataset.Parts{Train: data}, converging(engine, dtype))
		w, b := parameters(t, result.Posterior)
		computetest.Near(t, "bias", b, want[2:], .02)
		for i := range 2 {
			draws := column(w, 2, i)
			dropped := 0.0
			for _, v := range draws {
				if v == 0 {
					dropped++
				} else if math.Abs(v*(1-rate)-want[i]) > .02*(1+math.Abs(want[i])) {
					t.Fatalf("weight %d is %.4f where it is kept, want %.4f", i, v, want[i]/(1-rate))
				}
			}
			if z := (dropped - 2000*rate) / math.Sqrt(2000*rate*(1-rate)); math.Abs(z) > 4.5 {
				t.Errorf("weight %d is dropped in %v of 2000 draws, want a share of %v", i, dropped, rate)
			}
		}
	})
}

// MAP-HMC and HMC draw from the exact posterior: for MAP-HMC that of w at the b of MAP, for HMC that of w and b, all with the prior.
func TestChainsAreExact(t *testing.T) {
	data := line(rows)
	settings := converging(goEngine(t), compute.Float64)
	mode, precision := exactLine(t, data, ridge)
	var covariance mat.Dense
	if err := covariance.Inverse(precision); err != nil {
		t.Fatal(err)
	}
	kernel := mcmc.HMC{StepSize: .05, Steps: 8, Jitter: .3}
	method := MAPHMC{Kernel: kernel, Chains: 50, Draws: 40, WarmUp: 20}
	result := fit(t, lineModel, method, dataset.Parts{Train: data}, settings)
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
	result = fit(t, lineModel, HMC{Kernel: kernel, Chains: 50, Draws: 40, WarmUp: 20}, dataset.Parts{Train: data}, settings)
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
	for i := range 3 {
		holdChains(t, "HMC", result.Chains.Draws.Coordinate(i), mean.AtVec(i), math.Sqrt(covariance.At(i, i)))
	}
	if result.Posterior.Bound().W != 0 {
		t.Errorf("HMC for all parameters shares %d numbers", result.Posterior.Bound().W)
	}
}

// holdChains holds chains to a mean and a standard deviation within 5 standard errors, taken from the spread of the chains' own means and mean squares, which are
// independent: with 50 chains Student's t with 49 degrees of freedom, a false alarm of 8e-6.
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

// With one weight and all rows in the batch SGLD is the unadjusted Langevin algorithm: its stationary variance is v / (1 - e/(4 v)) for a posterior of
// variance v and step size e, the noise's variance (package mcmc); at e = v that is a third more. From mini-batches the mean stays.
func TestSGLDAndSGHMC(t *testing.T) {
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Prior: bayes.Normal{StdDev: tau}, Stochastic: bayes.Weights(1)}
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
		method   Method
		batch    int
		variance float64 // 0: not checked
	}{
		{"SGLD", SGLD{StepSize: variance, MiniBatchChains: MiniBatchChains{Chains: 50, Epochs: 450, BurnIn: 50, Samples: 4000}}, rows, variance / .75},
		{"SGLD from mini-batches", SGLD{StepSize: .1 * variance, MiniBatchChains: MiniBatchChains{Chains: 50, Epochs: 300, BurnIn: 50, Samples: 4000}}, rows / 4, 0},
		{"SGHMC", SGHMC{LearningRate: .01 * variance, MiniBatchChains: MiniBatchChains{Chains: 50, Epochs: 2500, BurnIn: 500, Samples: 4000}}, rows, variance},
	} {
		settings.BatchSize, settings.Epochs = c.batch, 500
		result := fit(t, model, c.method, dataset.Parts{Train: data}, settings)
		draws := result.Chains.Draws.Coordinate(0)
		if c.variance > 0 {
			holdChains(t, c.name, draws, mean, math.Sqrt(c.variance))
			continue
		}
		// All chains have the same mini-batches, so their errors are not independent: the mean is held to a fifth of a standard deviation.
		all := 0.0
		for _, chain := range draws {
			all += stat.Mean(chain, nil) / float64(len(draws))
		}
		if math.Abs(all-mean) > .2*math.Sqrt(variance) {
			t.Errorf("%s: mean %.4f, want %.4f, with a standard deviation of %.4f", c.name, all, mean, math.Sqrt(variance))
		}
	}
}

// SWAG's mean, variances and deviations are those of the iterates at the ends of the epochs, computed here, and its draws have the moments of
// the paper's equation 1.
func TestSWAGFitsTheIterates(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		const collect, rank = 9, 4
		trainer := NewTrainer(small)
		defer trainer.Close()
		j, err := trainer.newJob(SWAG{Collect: collect, Rank: rank}, dataset.Parts{Train: line(30)}, Settings{Epochs: 3, BatchSize: 12, Engine: engine, DType: dtype})
		if err != nil {
			t.Fatal(err)
		}
		m := j.method.(SWAG)
		p, err := j.newPoints(1, true)
		if err != nil {
			t.Fatal(err)
		}
		_, width := p.size()
		start := make([]float64, width)
		for i := range start {
			start[i] = math.Sin(float64(i))
		}
		r, err := j.newRun(m.stage(p, start))
		if err != nil {
			t.Fatal(err)
		}
		defer r.state.Close()
		var all [][]float64
		for r.step < r.steps {
			if err := r.advance(); err != nil {
				t.Fatal(err)
			}
			if r.step%3 == 0 { // 30 rows in batches of 12
				host, err := r.state.Host("theta")
				if err != nil {
					t.Fatal(err)
				}
				theta, err := compute.Float64s(host["theta"])
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, theta)
			}
		}
		if len(all) != collect {
			t.Fatalf("%d epochs, want %d", len(all), collect)
		}
		around, err := r.result()
		if err != nil {
			t.Fatal(err)
		}
		g, err := m.gaussian(around, collect)
		if err != nil {
			t.Fatal(err)
		}
		within := 1e-12
		if dtype == compute.Float32 {
			within = 1e-6
		}
		sum, mean, variance := make([]float64, width), make([]float64, width), make([]float64, width)
		var deviations [][]float64
		for n, theta := range all {
			deviation := make([]float64, width)
			for i, v := range theta {
				sum[i] += v
				deviation[i] = v - sum[i]/float64(n+1)
			}
			deviations = append(deviations, deviation)
		}
		for i := range mean {
			mean[i] = sum[i] / collect
			for _, theta := range all {
				variance[i] += (theta[i] - mean[i]) * (theta[i] - mean[i]) / collect
			}
		}
		computetest.Near(t, "mean", g.mean, mean, within)
		computetest.Near(t, "variance", g.variance, variance, within)
		for k := range rank {
			computetest.Near(t, "deviation", g.deviations[k], deviations[collect-rank+k], within)
		}

		rng := rand.New(rand.NewPCG(1, 1))
		for _, diagonal := range []bool{false, true} {
			f := g
			if diagonal {
				f.deviations = nil
			}
			draws := make([][]float64, 4000)
			for n := range draws {
				draws[n] = f.draw(rng)
			}
			for i := range width {
				v := g.variance[i]
				if !diagonal {
					v /= 2
					for _, d := range g.deviations {
						v += d[i] * d[i] / (2 * (rank - 1))
					}
				}
				var of []float64
				for _, d := range draws {
					of = append(of, d[i])
				}
				checkMoments(t, of, g.mean[i], math.Sqrt(v))
			}
			// The first two coordinates' covariance is the low-rank part's.
			a, b, want := make([]float64, len(draws)), make([]float64, len(draws)), 0.0
			for n, d := range draws {
				a[n], b[n] = d[0], d[1]
			}
			for _, d := range f.deviations {
				want += d[0] * d[1] / (2 * (rank - 1))
			}
			v1, v2 := stat.Variance(a, nil), stat.Variance(b, nil)
			if z := (stat.Covariance(a, b, nil) - want) / math.Sqrt((want*want+v1*v2)/4000); math.Abs(z) > 4.5 {
				t.Errorf("diagonal %t: covariance is off by %.1f standard errors", diagonal, z)
			}
		}
	})
}

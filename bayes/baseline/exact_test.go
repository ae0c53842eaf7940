package baseline

import (
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/train"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// The linear Gaussian model y ~ N(w'x + b, sd^2) with w ~ N(0, tau^2 I) stochastic and b shared, on 40 rows in raw
// units: everything about it is known.
const (
	sd, tau = .5, .3
	rows    = 40
)

var lineModel = bayes.Model{
	Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Prior: bayes.Normal{StdDev: tau},
	Stochastic: bayes.Weights(1),
	Scaling:    bayes.Scaling{KeepFeatures: true, KeepTarget: true},
}

// exactLine solves for (w_1, w_2, b) that maximises the likelihood, or with the prior on w the posterior density, where
// penalty, [2], is added to the diagonal of w's precision; and gives w's precision at a known b, [2, 2].
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
		Epochs: 500, BatchSize: rows, Engine: engine, DType: dtype,
		Optimiser: train.Adam{Schedule: train.Exponential(.1, .5, 50)},
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

// MLE is least squares; MAP is ridge regression with an intercept that is not penalised; so is each member of an
// ensemble, which is compiled by XLA for all of them.
func TestPointsAreExact(t *testing.T) {
	data := line(rows)
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, c := range []struct {
			method  fit.Method
			penalty [2]float64
		}{{MLE{}, [2]float64{}}, {MAP{}, ridge}, {Ensemble{Members: 3}, ridge}, {Ensemble{Members: 2, Likelihood: true},
			[2]float64{}}} {
			if engine.IsXLA() && c.method != fit.Method(Ensemble{Members: 3}) {
				continue
			}
			want, _ := exactLine(t, data, c.penalty)
			result := fitted(t, lineModel, c.method, dataset.Parts{Train: data}, converging(engine, dtype))
			w, b := parameters(t, result.Posterior)
			for j := range result.Posterior.Particles() {
				computetest.Near(t, nameOf(c.method), append(w[2*j:2*j+2:2*j+2], b[j]), want, tolerance(dtype))
			}
		}
	})
}

// MAP with a Laplace prior is the lasso (Tibshirani 1996): at two scales, at which some weights are 0 and some are not,
// what coordinate descent by soft thresholds finds, with an intercept that is not penalised.
func TestLasso(t *testing.T) {
	data := line(rows)
	engine := goEngine(t)
	zeros := 0
	for _, scale := range []float64{.02, .005} {
		want := []float64{0, 0, 0}
		for range 1000 {
			for k := range want {
				inner, square := 0., 0.
				for n, y := range data.Y {
					x := []float64{data.X.At(n, 0), data.X.At(n, 1), 1}
					rest := y
					for l := range want {
						if l != k {
							rest -= want[l] * x[l]
						}
					}
					inner, square = inner+x[k]*rest, square+x[k]*x[k]
				}
				threshold := sd * sd / scale
				if k == 2 {
					threshold = 0
				}
				want[k] = math.Copysign(max(0, math.Abs(inner)-threshold), inner) / square
			}
		}
		for _, w := range want[:2] {
			if w == 0 {
				zeros++
			}
		}
		model := lineModel
		model.Prior = bayes.Laplace{B: scale}
		w, b := parameters(t, fitted(t, model, MAP{}, dataset.Parts{Train: data},
			converging(engine, compute.Float64)).Posterior)
		computetest.Near(t, "lasso", append(w, b...), want, tolerance(compute.Float64))
	}
	if zeros == 0 || zeros == 4 {
		t.Errorf("%d of 4 weights are 0: the scales do not tell the lasso from ridge regression", zeros)
	}
}

// From mini-batches of a quarter of the rows MAP comes to the same ridge solution, up to noise that falls with the
// learning rate: without the factor N/n the prior would count four times as much, which moves w by more than .1.
func TestMiniBatchesStandForAllRows(t *testing.T) {
	data := line(rows)
	settings := converging(goEngine(t), compute.Float64)
	settings.BatchSize, settings.Optimiser.Schedule = rows/4, train.Exponential(.1, .5, 200)
	want, _ := exactLine(t, data, ridge)
	wrong, _ := exactLine(t, data, [2]float64{4 * ridge[0], 4 * ridge[1]})
	if math.Abs(wrong[0]-want[0]) < .1 {
		t.Fatal("the data does not tell")
	}
	w, b := parameters(t, fitted(t, lineModel, MAP{}, dataset.Parts{Train: data}, settings).Posterior)
	computetest.Near(t, "MAP from mini-batches", append(w, b...), want, .01)

	// VI, whose divergence from the prior would count four times as much as well. Its posterior's 4000 draws give a
	// mean to .0005 and a standard deviation to a hundredth; what is left is the noise of the training.
	w, b = parameters(t, fitted(t, lineModel, VI{Draws: 50, Samples: 4000}, dataset.Parts{Train: data},
		settings).Posterior)
	_, precision := exactLine(t, data, ridge)
	computetest.Near(t, "bias of VI from mini-batches", b, want[2:], .02)
	for i := range 2 {
		m, s := stat.MeanStdDev(column(w, 2, i), nil)
		if exact := 1 / math.Sqrt(precision.At(i, i)); math.Abs(m-want[i]) > .02 || math.Abs(s/exact-1) > .08 {
			t.Errorf("VI from mini-batches: weight %d is %.4f +- %.4f, want %.4f +- %.4f", i, m, s, want[i], exact)
		}
	}
}

// E_q log p - E_q log q of a mean-field normal has a closed form under both priors; for the Laplace prior the estimate
// from 20 000 draws is within 5 standard errors of it, each term's deviation being at most the scale's: a false alarm
// below 1e-6.
func TestVIAgainstPrior(t *testing.T) {
	engine, dtype := goEngine(t), compute.Float64
	mu, sigma := []float64{-.4, 0, .2, .7, -1, .1}, []float64{.1, .5, 1, .3, .05, 2}
	for _, prior := range []bayes.Prior{bayes.Normal{PerLayer: map[int]float64{1: .7}},
		bayes.Laplace{PerLayer: map[int]float64{1: .7}}} {
		bound, err := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{}, Prior: prior,
			Stochastic: bayes.All()}.Bind(5, 1)
		if err != nil {
			t.Fatal(err)
		}
		lambda, want, within := append([]float64(nil), mu...), 0.0, 1e-12
		for i, s := range sigma {
			lambda = append(lambda, math.Log(math.Expm1(s)))
			want += .5*math.Log(2*math.Pi*math.E) + math.Log(s)
			if _, normal := prior.(bayes.Normal); normal {
				want -= (mu[i]*mu[i]+s*s)/(2*.49) + math.Log(.7) + .5*math.Log(2*math.Pi)
				continue
			}
			folded := s*math.Sqrt(2/math.Pi)*math.Exp(-mu[i]*mu[i]/(2*s*s)) + mu[i]*math.Erf(mu[i]/(s*math.Sqrt2)) // E |x|
			want -= folded/.7 + math.Log(1.4)
			within += 5 * s / .7 / math.Sqrt(20_000)
		}
		f := meanField{bound: bound, dtype: dtype}
		got := computetest.Run(t, engine, func(g *graph.Graph, args []*graph.Node) []*graph.Node {
			return []*graph.Node{f.negativeKL(args[0], f.draw(args[0], random.New(g, 3), 20_000))}
		}, lambda)
		if math.Abs(got[0][0]-want) > within {
			t.Errorf("%T: %.6f, want %.6f within %.2g", prior, got[0][0], want, within)
		}
	}
}

// The best mean-field normal of a Gaussian has its mean, the ridge solution, and the inverse of its precision's
// diagonal as variances. Each step has 100 draws and the learning rate falls to a thousandth, so that what is left of
// the noise is under one percent.
func TestVIIsMeanFieldOptimum(t *testing.T) {
	data := line(rows)
	want, precision := exactLine(t, data, ridge)
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		fitted := fitted(t, lineModel, VI{Draws: 100, Samples: 4000}, dataset.Parts{Train: data}, converging(engine, dtype))
		computetest.Near(t, "mean", fitted.Theta[:2], want[:2], .01)
		computetest.Near(t, "shared bias", fitted.Theta[4:], want[2:], .01)
		w, _ := parameters(t, fitted.Posterior)
		for i := range 2 {
			s := 1 / math.Sqrt(precision.At(i, i))
			if got := math.Log1p(math.Exp(fitted.Theta[2+i])); math.Abs(got/s-1) > .02 {
				t.Errorf("standard deviation of weight %d is %.5f, want %.5f", i, got, s)
			}
			checkMoments(t, column(w, 2, i), fitted.Theta[i], math.Log1p(math.Exp(fitted.Theta[2+i])))
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

// checkMoments holds independent normal draws to a mean and a standard deviation, each within 4.5 standard errors: a
// false alarm of 7e-6, but seeds are fixed.
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

// Laplace with a full precision is the exact posterior of w at the shared b: its mean, and its covariance, the inverse
// of the precision. XLA compiles the full one.
func TestLaplaceIsExact(t *testing.T) {
	data := line(rows)
	want, precision := exactLine(t, data, ridge)
	var covariance mat.Dense
	if err := covariance.Inverse(precision); err != nil {
		t.Fatal(err)
	}
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, structure := range []Structure{fullPrecision, lastLayerPrecision} {
			if engine.IsXLA() && structure != fullPrecision {
				continue
			}
			result := fitted(t, lineModel, Laplace{Structure: structure, Samples: 4000}, dataset.Parts{Train: data},
				converging(engine, dtype))
			w, b := parameters(t, result.Posterior)
			computetest.Near(t, "bias", b, want[2:], tolerance(dtype))
			first, second := column(w, 2, 0), column(w, 2, 1)
			c := stat.Covariance(first, second, nil)
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
// so the penalty on w_i^2/2 is p/(1-p) sum_n x_ni^2 / sd^2 + 1/(tau^2 (1-p)). With 400 masks a step, and a falling
// learning rate, training comes to it.
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
	result := fitted(t, lineModel, Dropout{Rate: rate, Masks: 400, Samples: 2000}, dataset.Parts{Train: data},
		converging(goEngine(t), compute.Float64))
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
}

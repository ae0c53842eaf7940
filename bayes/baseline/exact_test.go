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
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat"
)

// MLE is least squares; MAP is ridge regression with an intercept that is not penalised; so is each member of an
// ensemble, which is compiled by XLA for all of them.
func TestPointsAreExact(t *testing.T) {
	data := fittest.Data(rows)
	training := converging // without a prior the ascent is slower
	training.Epochs, training.Optimiser.Schedule.Every = 1000, 100
	ensemble := Ensemble{Training: training, Members: 3}
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, c := range []struct {
			method  fit.Method
			penalty float64
		}{
			{MLE{training}, 0}, {MAP{training}, ridge}, {ensemble, ridge},
			{Ensemble{Training: training, Members: 2, Likelihood: true}, 0},
		} {
			if engine.IsXLA() && c.method != fit.Method(ensemble) {
				continue
			}
			want, _ := exactLine(t, data, c.penalty, c.penalty)
			result, _ := fitted(t, lineModel, c.method, dataset.Parts{Train: data}, run.Settings{Engine: engine, DType: dtype})
			w, b := parameters(t, result.Posterior)
			for j := range b {
				computetest.Near(t, c.method.Title(), append(w[2*j:2*j+2:2*j+2], b[j]), want, tolerance(dtype))
			}
		}
	})
}

// From mini-batches of a quarter of the rows MAP comes to the same ridge solution, up to noise that falls with the
// learning rate: without the factor N/n the prior would count four times as much, which moves w by more than .1.
func TestMiniBatchesStandForAllRows(t *testing.T) {
	data := fittest.Data(rows)
	training := converging
	training.BatchSize, training.Optimiser.Schedule = rows/4, train.Exponential(.1, .5, 200)
	parts, settings := dataset.Parts{Train: data}, run.Settings{DType: compute.Float64}
	want, precision := exactLine(t, data, ridge, ridge)
	if wrong, _ := exactLine(t, data, 4*ridge, 4*ridge); math.Abs(wrong[0]-want[0]) < .1 {
		t.Fatal("this tests little")
	}
	result, _ := fitted(t, lineModel, MAP{training}, parts, settings)
	w, b := parameters(t, result.Posterior)
	computetest.Near(t, "MAP from mini-batches", append(w, b...), want, .01)

	// VI, whose divergence from the prior would count four times as much as well. Its posterior's 4000 draws give a
	// mean to .0005 and a standard deviation to a hundredth; what is left is the noise of the training.
	result, _ = fitted(t, lineModel, VI{Training: training, Draws: 50, Samples: 4000}, parts, settings)
	w, b = parameters(t, result.Posterior)
	computetest.Near(t, "bias of VI from mini-batches", b, want[2:], .02)
	for i := range 2 {
		m, s := stat.MeanStdDev(column(w, 2, i), nil)
		if exact := 1 / math.Sqrt(precision.At(i, i)); math.Abs(m-want[i]) > .02 || math.Abs(s/exact-1) > .08 {
			t.Errorf("VI from mini-batches: weight %d is %.4f +- %.4f, want %.4f +- %.4f", i, m, s, want[i], exact)
		}
	}
}

// laplacePrior has the density exp(-|x|/.7)/1.4 for each number.
type laplacePrior struct{ bayes.Normal }

func (laplacePrior) LogDensity(phi *graph.Node, _ []bayes.Slot) *graph.Node {
	each := graph.SubScalar(graph.DivScalar(graph.Neg(graph.Abs(phi)), .7), math.Log(1.4))
	return graph.ReduceSum(each, 1)
}

// Sample is by inversion.
func (laplacePrior) Sample(rng random.Stream, dtype compute.DType, particles int, slots []bayes.Slot) *graph.Node {
	v := graph.SubScalar(rng.Uniform(dtype, particles, len(bayes.Scales(laplacePrior{}, slots))), .5)
	size := graph.MulScalar(graph.Log1p(graph.MulScalar(graph.Abs(v), -2)), -.7)
	return graph.Mul(graph.Sign(v), size)
}

func init() { bayes.Register(laplacePrior{}) }

// E_q log p - E_q log q of a mean-field normal has a closed form under both priors; for the Laplace prior the estimate
// from 20 000 draws is within 5 standard errors of it, each term's deviation being at most the scale's: a false alarm
// below 1e-6.
func TestVIAgainstPrior(t *testing.T) {
	mu, sigma := []float64{-.4, 0, .2, .7, -1, .1}, []float64{.1, .5, 1, .3, .05, 2}
	for _, prior := range []bayes.Prior{bayes.Normal{PerLayer: map[int]float64{1: .7}}, laplacePrior{}} {
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
		f := meanField{bound: bound, dtype: compute.Float64}
		got := computetest.Run(t, computetest.Go(t), func(g *graph.Graph, args []*graph.Node) []*graph.Node {
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
	data := fittest.Data(rows)
	want, precision := exactLine(t, data, ridge, ridge)
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		result, details := fitted(t, lineModel, VI{Training: converging, Draws: 100, Samples: 4000},
			dataset.Parts{Train: data}, run.Settings{Engine: engine, DType: dtype})
		computetest.Near(t, "mean", details.Theta[:2], want[:2], .01)
		computetest.Near(t, "shared bias", details.Theta[4:], want[2:], .01)
		w, _ := parameters(t, result.Posterior)
		for i := range 2 {
			s := math.Log1p(math.Exp(details.Theta[2+i]))
			if exact := 1 / math.Sqrt(precision.At(i, i)); math.Abs(s/exact-1) > .02 {
				t.Errorf("standard deviation of weight %d is %.5f, want %.5f", i, s, exact)
			}
			checkNormal(t, column(w, 2, i), details.Theta[i], s)
		}
	})
}

// VI of a prior whose hyperparameters are integrated out predicts about as chains do.
func TestVIOfJointPrior(t *testing.T) {
	parts, err := fittest.Data(150).Split(dataset.Fractions{Train: .3, Test: .7}, 1)
	if err != nil {
		t.Fatal(err)
	}
	model := bayes.Model{Network: nn.MLP{Hidden: []int{2}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .5},
		Prior: bayes.LearntPrecision{}, Stochastic: bayes.All()}
	var nlpd []float64
	for _, m := range []fit.Method{
		VI{Training: Training{BatchSize: 20, Optimiser: train.Adam{Schedule: train.Exponential(.03, .5, 200)}}},
		mcmc.Chains{Kernel: mcmc.HMC{Steps: 5, Jitter: .5}, Chains: 16, Draws: 50, WarmUp: 100},
	} {
		result, _ := fitted(t, model, m, parts, run.Settings{Seed: 1})
		scores, err := metric.Of(t.Context(), result.Posterior, parts.Test)
		if err != nil {
			t.Fatal(err)
		}
		nlpd = append(nlpd, scores[0].Value)
	}
	if d := nlpd[0] - nlpd[1]; !(math.Abs(d) < .1) {
		t.Errorf("NLPD %.3f, the chains' %.3f", nlpd[0], nlpd[1])
	}
}

// Laplace is the exact posterior: its mean, and its covariance, the inverse of the precision; with a full precision of
// w at the shared b, which XLA compiles too, and with Kronecker factors of all.
func TestLaplaceIsExact(t *testing.T) {
	data := fittest.Data(rows)
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, structure := range []Structure{fullPrecision, lastLayerPrecision, KroneckerPrecision} {
			if engine.IsXLA() && structure != fullPrecision {
				continue
			}
			model := lineModel
			mode, precision := exactLine(t, data, ridge, ridge)
			if structure == KroneckerPrecision { // whose product is the precision itself, of weights and bias
				model.Stochastic = bayes.All()
				mode, precision = exactLine(t, data, ridge, ridge, ridge)
			}
			method := Laplace{Training: converging, Structure: structure, Samples: 4000}
			result, _ := fitted(t, model, method, dataset.Parts{Train: data}, run.Settings{Engine: engine, DType: dtype})
			w, b := parameters(t, result.Posterior)
			if structure == KroneckerPrecision {
				var draws []float64
				for j := range b {
					draws = append(draws, w[2*j], w[2*j+1], b[j])
				}
				checkGaussian(t, draws, mode, inverse(t, precision))
				continue
			}
			computetest.Near(t, "bias", b, mode[2:], tolerance(dtype))
			checkGaussian(t, w, mode[:2], inverse(t, precision.SliceSym(0, 2)))
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
	data := fittest.Data(rows)
	penalty := make([]float64, 2)
	for i := range penalty {
		penalty[i] = 1 / (tau * tau * (1 - rate))
		for n := range data.Y {
			penalty[i] += rate / (1 - rate) * data.X.At(n, i) * data.X.At(n, i) / (sd * sd)
		}
	}
	want, _ := exactLine(t, data, penalty...)
	result, _ := fitted(t, lineModel, Dropout{Training: converging, Rate: rate, Masks: 400, Samples: 2000},
		dataset.Parts{Train: data}, run.Settings{DType: compute.Float64})
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

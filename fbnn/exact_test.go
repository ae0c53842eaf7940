package fbnn

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// A network without a hidden layer is a linear regression, whose posterior is known: of 3 features and an intercept, 30
// rows, noise .5 and a prior N(0, 1).
func regression() (bayes.Model, dataset.Parts, check.Linear) {
	const rows, features, noise = 30, 3, .5
	rng := rand.New(rand.NewPCG(4, 2))
	l := check.Linear{NoiseStdDev: noise}
	x, y := mat.NewDense(rows, features, nil), make([]float64, rows)
	for i := range rows {
		row := make([]float64, features+1)
		row[features] = 1
		for k := range features {
			row[k] = rng.NormFloat64()
			x.Set(i, k, row[k])
			y[i] += []float64{1, -.5, .2}[k] * row[k]
		}
		y[i] += .3 + noise*rng.NormFloat64()
		l.X = append(l.X, row)
	}
	l.Y = y
	model := bayes.Model{
		Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: noise}, Prior: bayes.Normal{StdDev: 1},
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true}, // Stochastic is All by default
	}
	data := &dataset.Dataset{
		Name: "line", Task: dataset.Regression, X: x, Y: y, Features: []string{"a", "b", "c"}, Target: "y",
	}
	return model, dataset.Parts{Train: data}, l
}

// off is how far each coordinate's mean is from the regression's, in posterior standard deviations.
func off(t *testing.T, r *found, l check.Linear) []float64 {
	t.Helper()
	phi, err := compute.Float64s(r.Draws.Phi)
	if err != nil {
		t.Fatal(err)
	}
	mean, covariance, _ := l.Posterior()
	d := len(mean)
	out, column := make([]float64, d), make([]float64, len(phi)/d)
	for i := range d {
		for j := range column {
			column[j] = phi[j*d+i]
		}
		out[i] = (stat.Mean(column, nil) - mean[i]) / math.Sqrt(covariance.At(i, i))
	}
	return out
}

// shifted is linear regression whose predictions are off by a part of the first score.
type shifted struct {
	linear
	By float64
}

func (s shifted) prepare() (Regressor, error) { return s, nil }
func (s shifted) learn(ctx context.Context, l *lesson) (*predictor, error) {
	learnt, err := s.linear.learn(ctx, l)
	if err != nil {
		return nil, err
	}
	right := learnt.predict
	learnt.predict = func(data compute.Nodes, theta *graph.Node) *graph.Node {
		return graph.AddScalar(right(data, theta), s.By)
	}
	return learnt, nil
}

// All chains begin at the last pair: transitions whose steps are too short to change a bit leave them there.
func TestChainsBeginAtTheLastPair(t *testing.T) {
	model, parts, _ := regression()
	ces := quick(CES{Sampling: mcmc.HMC{StepSize: 1e-30, Steps: 1}, Chains: 2, Draws: 4, Uncorrected: true})
	r := fitted(t, model, ces, parts, run.Settings{Engine: computetest.Go(t)})
	theta, err := compute.Float64s(r.Calibration.Draws.Tensor())
	if err != nil {
		t.Fatal(err)
	}
	draws, err := compute.Float64s(r.Draws.Phi)
	if err != nil {
		t.Fatal(err)
	}
	last := theta[len(theta)-4:]
	if want := slices.Repeat(last, 8); !slices.Equal(draws, want) || slices.Equal(last, theta[:4]) {
		t.Errorf("the draws of two chains are %v, want %v", draws, want)
	}
}

// The default and each of its parts are exact: without correction a linear emulator knows the posterior from 160 pairs,
// and with it even a wrong one does not harm.
func TestExact(t *testing.T) {
	engine := computetest.Go(t) // XLA would compile for most of the time
	if testing.Short() {
		t.Skip("long")
	}
	model, parts, l := regression()
	for _, c := range []struct {
		name  string
		a     CES
		exact bool // the emulator
	}{
		{"linear, uncorrected", CES{Regressor: linear{}, Uncorrected: true}, true},
		{"random network of the log-likelihood", CES{Regressor: RandomNetwork{}, Emulates: LogLikelihood}, false},
		{
			"pCN-HMC, network", CES{
				Regressor:   Network{Epochs: 100, Activations: []nn.Activation{nn.Tanh}},
				Calibration: mcmc.PreconditionedCrankNicolson{}, Sampling: mcmc.HMC{StepSize: .05, Steps: 3},
			}, false,
		},
		{
			"RNS-HMC", CES{
				Emulates: LogLikelihood, Regressor: RandomNetwork{}, Sampling: mcmc.HMC{Steps: 3},
			}, false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.a.Chains, c.a.Draws = 4, 1000
			r := fitted(t, model, c.a, parts, run.Settings{Engine: engine, DType: compute.Float64, Seed: 3})
			t.Logf("%+v, %+v, second stage %.3g, %v", r.HeldOut, r.Truth, r.SecondStage, r.Evaluations)
			right(t, r, l)
			if k, ok := c.a.Sampling.(mcmc.HMC); ok && (k.StepSize == 0) != (r.stepSize > 0) {
				t.Errorf("the chosen step size is %v where %v was set", r.stepSize, k.StepSize)
			}
			if held := r.HeldOut; c.exact && !(1-held.R2 < 1e-12 && held.Gradient < 1e-9 && r.Truth.RMS < 1e-9) {
				t.Errorf("a linear emulator of a linear network: %+v, root mean square of Phi %.3g", held, r.Truth.RMS)
			}
			if len(r.Warnings) > 0 {
				t.Errorf("warnings: %q", r.Warnings)
			}
		})
	}
}

// right fails the test where a mean is more than 4.5 Monte Carlo errors off: by chance in 3 of 100 000 runs of four
// coordinates.
func right(t *testing.T, r *found, l check.Linear) {
	t.Helper()
	for i, e := range off(t, r, l) {
		if limit := 4.5 / math.Sqrt(r.Truth.minESS); !(math.Abs(e) < limit) {
			t.Errorf("the mean of coordinate %d is off by %.3f standard deviations, %.3f is allowed", i, e, limit)
		}
	}
}

// An emulator that is wrong everywhere by the same gives the posterior of other data, which is known; delayed
// acceptance brings the right one back, and only PaperMode predicts by the emulator.
func TestWrongEmulator(t *testing.T) {
	engine := computetest.Go(t) // XLA would compile for most of the time
	if testing.Short() {
		t.Skip("long")
	}
	model, parts, l := regression()
	fit := func(a CES) *found {
		a.Regressor, a.Chains, a.Draws = shifted{By: .3}, 4, 4000
		r := fitted(t, model, a, parts, run.Settings{Engine: engine, DType: compute.Float64, Seed: 3})
		return r
	}
	paper := fit(CES{PaperMode: true})
	emulated, err := paper.Predict(t.Context(), parts.Train.X)
	if err != nil {
		t.Fatal(err)
	}
	network, err := paper.Posterior.Predict(t.Context(), parts.Train.X)
	if err != nil {
		t.Fatal(err)
	}
	other := l
	other.Y = nil
	for n, y := range l.Y {
		shift := emulated.Outputs[n] - network.Outputs[n]
		if later := emulated.Outputs[30*7000+n] - network.Outputs[30*7000+n]; math.Abs(later-shift) > 1e-9 {
			t.Fatalf("row %d: the emulator is off by %v in the first draw, and by %v later", n, shift, later)
		}
		other.Y = append(other.Y, y-shift)
	}
	right(t, paper, other)
	far := 0.
	for _, e := range off(t, paper, l) {
		far = max(far, math.Abs(e))
	}
	if far < .3 || paper.Truth.RMS < .5 {
		t.Errorf("the wrong emulator moves means by %.3f standard deviations only, Phi by %.3g", far, paper.Truth.RMS)
	}
	corrected := fit(CES{})
	right(t, corrected, l)
	if !(corrected.SecondStage > .2 && corrected.SecondStage < .9) {
		t.Errorf("the second stage accepts %.3f", corrected.SecondStage)
	}
	if _, err := corrected.Predict(t.Context(), parts.Train.X); err == nil ||
		!strings.Contains(err.Error(), "only CES.PaperMode predicts by the emulator") {
		t.Errorf("predictions by the emulator: %v", err)
	}
}

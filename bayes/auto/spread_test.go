package auto

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/mat"
)

// A noise that is too wide, or too narrow, by some factor is scaled by it, and the intervals then hold nine of ten of
// the rows; one that is right is left. The posterior whose parameters are changed predicts what was judged.
func TestSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const rows, targets = 500, 2
	y := make([]float64, rows*targets) // the second is ten times as wide
	for i := range y {
		y[i] = math.Pow(10, float64(i%targets)) * rng.NormFloat64()
	}
	for _, factor := range []float64{.5, 1, 1.6} {
		outputs := make([]float64, 0, 2*targets*rows)
		for range rows {
			outputs = append(outputs, 0, 0, math.Log(factor), math.Log(10*factor))
		}
		l := &left{
			folds: []bayes.Prediction{{Likelihood: bayes.Heteroscedastic{}, Outputs: outputs, Particles: 1, Rows: rows,
				Width: 2 * targets, Size: targets, Weights: []float64{1}}},
			targets: [][]float64{y},
		}
		if err := l.fit(); err != nil {
			t.Fatal(err)
		}
		// Of 1000 targets the scale has a standard error of .022, beside half a step.
		if off := l.t + math.Log(factor); math.Abs(off) > .09 || factor == 1 && l.t != 0 {
			t.Errorf("noise that is %v times as wide is scaled by %v", factor, math.Exp(l.t))
		}
		if share, n, err := l.covered(); err != nil || math.Abs(share-.9) > .04 || n != rows {
			t.Errorf("the intervals of noise that was %v times as wide hold %v of %d rows (%v)", factor, share, n, err)
		}
	}

	for _, likelihood := range []bayes.Likelihood{bayes.Heteroscedastic{}, bayes.HeteroscedasticT{}} {
		bound, err := bayes.Model{
			Network: nn.MLP{Hidden: []int{3}, Activation: nn.Tanh}, Likelihood: likelihood, Stochastic: bayes.All(),
		}.Bind(2, 1)
		if err != nil {
			t.Fatal(err)
		}
		phi := make([]float64, 4*bound.D)
		for i := range phi {
			phi[i] = rng.NormFloat64()
		}
		predicted := func(phi []float64) bayes.Prediction {
			draws := bayes.Draws{
				Phi: compute.Floats(compute.Float64, phi, 4, bound.D), LogWeights: bayes.EqualLogWeights(4),
			}
			if bound.W > 0 {
				draws.Psi = compute.Floats(compute.Float64, make([]float64, bound.W), bound.W)
			}
			p, err := bayes.NewPosterior(bound, draws, bayes.Origin{Engine: computetest.Go(t)})
			if err != nil {
				t.Fatal(err)
			}
			prediction, err := p.Predict(t.Context(), mat.NewDense(2, 2, []float64{.3, -1, 2, .5}))
			if err != nil {
				t.Fatal(err)
			}
			return prediction
		}
		l := &left{t: .3}
		var ok bool
		if l.noise, ok = noiseOf(bound); !ok {
			t.Fatalf("%T has no noise", likelihood)
		}
		want := l.scaled(predicted(phi), l.t).Outputs
		l.widen(phi, bound.D)
		if got := predicted(phi).Outputs; !slices.EqualFunc(got, want, func(a, b float64) bool {
			return math.Abs(a-b) < 1e-9
		}) {
			t.Errorf("%T: the outputs are %v, judged were %v", likelihood, got, want)
		}
	}
}

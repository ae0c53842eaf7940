package baseline

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
)

// uci is the network of the UCI tables, its third layer stochastic.
var uci = bayes.Model{Network: nn.MLP{Hidden: []int{50, 20, 5}, Activation: nn.GELU}, Likelihood: bayes.Gaussian{},
	Stochastic: bayes.Layers(3)}

func made(rows int) *dataset.Dataset {
	rng := rand.New(rand.NewPCG(3, 4))
	x, y := mat.NewDense(rows, 13, nil), make([]float64, rows)
	features := make([]string, 13)
	for n := range y {
		for k := range features {
			x.Set(n, k, rng.NormFloat64())
			features[k] = fmt.Sprint("x", k)
		}
		y[n] = x.At(n, 0)*x.At(n, 1) + .1*rng.NormFloat64()
	}
	return &dataset.Dataset{Name: "made", Task: dataset.Regression, Features: features, Target: "y", X: x, Y: y}
}

// BenchmarkTrain is 20 epochs of six batches of 50, without and with a validation on 150 rows after each, compiled
// before, on a net 13-50-20-5-1 in float32: a point, ensembles, and the families of VI and dropout, of the third layer
// and of all.
func BenchmarkTrain(b *testing.B) { computetest.Bench(b, benchmarkTrain) }

func benchmarkTrain(b *testing.B, engine *compute.Engine) {
	full, training := uci, Training{Epochs: 20, BatchSize: 50}
	full.Stochastic = bayes.All()
	for _, c := range computetest.Cases([]struct {
		name   string
		model  bayes.Model
		method fit.Method
	}{
		{"MAP", uci, MAP{training}}, {"10 members", uci, Ensemble{Training: training}},
		{"100 members", uci, Ensemble{Training: training, Members: 100}},
		{"VI, third layer", uci, VI{Training: training}}, {"VI, all", full, VI{Training: training}},
		{"dropout, third layer", uci, Dropout{Training: training}}, {"dropout, all", full, Dropout{Training: training}},
	}...) {
		for _, validated := range computetest.Cases(true, false) {
			parts := dataset.Parts{Train: made(300)}
			if validated {
				parts.Validation = made(150)
			}
			b.Run(fmt.Sprintf("%s/validated=%t", c.name, validated), func(b *testing.B) {
				for first := true; first || b.Loop(); first = false { // the first compiles
					fitted(b, c.model, c.method, parts, run.Settings{Engine: engine})
				}
			})
		}
	}
}

// BenchmarkPredict is one batched call of Predict: 100 particles of SWAG and of VI at 150 rows, compilation included,
// as a user pays it.
func BenchmarkPredict(b *testing.B) { computetest.Bench(b, benchmarkPredict) }

func benchmarkPredict(b *testing.B, engine *compute.Engine) {
	training := Training{Epochs: 4}
	for _, m := range computetest.Cases[fit.Method](SWAG{Training: training}, VI{Training: training}) {
		b.Run(fmt.Sprintf("%T", m), func(b *testing.B) {
			result, _ := fitted(b, uci, m, dataset.Parts{Train: made(300)}, run.Settings{Engine: engine})
			x := made(150).X
			for b.Loop() {
				p, err := result.Posterior.Predict(b.Context(), x)
				if err != nil || p.Particles != 100 {
					b.Fatalf("%d particles, %v", p.Particles, err)
				}
			}
		})
	}
}

package baseline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/train"

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

// BenchmarkStep is 60 steps on a net 13-50-20-5-1 with batches of 50 of 300 rows, float32, without and with a
// validation on 150 rows at each epoch: a point, ensembles, whose members are all parameters, and the families of VI
// and dropout, of the third layer and of all.
func BenchmarkStep(b *testing.B) { computetest.Bench(b, benchmarkStep) }

func benchmarkStep(b *testing.B, _ *compute.Engine) {
	full, batched := uci, Training{BatchSize: 50}
	full.Stochastic = bayes.All()
	for _, validated := range computetest.Cases(false, true) {
		for _, c := range computetest.Cases([]struct {
			name    string
			model   bayes.Model
			learner func(j *fit.Job) (train.Learner, error)
		}{
			{"1 member", uci, func(j *fit.Job) (train.Learner, error) { return newPoints(j, batched, 1, true) }},
			{"10 members", uci, func(j *fit.Job) (train.Learner, error) { return newPoints(j, batched, 10, true) }},
			{"100 members", uci, func(j *fit.Job) (train.Learner, error) { return newPoints(j, batched, 100, true) }},
			{"VI, third layer, 10 draws", uci, func(j *fit.Job) (train.Learner, error) {
				return newVariational(j, batched, meanField{.1, false, j.Bound, j.DType}, 10, 100)
			}},
			{"VI, all, 10 draws", full, func(j *fit.Job) (train.Learner, error) {
				return newVariational(j, batched, meanField{.1, false, j.Bound, j.DType}, 10, 100)
			}},
			{"dropout, third layer, 10 masks", uci, func(j *fit.Job) (train.Learner, error) {
				return newVariational(j, batched, dropoutFamily{.1, j.Bound, j.DType}, 10, 100)
			}},
			{"dropout, all, 10 masks", full, func(j *fit.Job) (train.Learner, error) {
				return newVariational(j, batched, dropoutFamily{.1, j.Bound, j.DType}, 10, 100)
			}},
		}...) {
			b.Run(fmt.Sprintf("%s/validated=%t", c.name, validated), func(b *testing.B) {
				engine, err := compute.Default()
				if err != nil {
					b.Fatal(err)
				}
				parts := dataset.Parts{Train: made(300)}
				if validated {
					parts.Validation = made(150)
				}
				j, prepared := jobOf(b, c.model, MAP{}, parts, Settings{Epochs: 10, Engine: engine})
				l, err := c.learner(j)
				if err != nil {
					b.Fatal(err)
				}
				for first := true; first || b.Loop(); first = false { // the first compiles
					trained(b, j, prepared.Training, l, nil)
				}
			})
		}
	}
}

// BenchmarkTrain is 20 epochs of six batches of 50, with a validation on 150 rows after each epoch, compiled before:
// MAP and ensembles of MAP.
func BenchmarkTrain(b *testing.B) { computetest.Bench(b, benchmarkTrain) }

func benchmarkTrain(b *testing.B, _ *compute.Engine) {
	for _, m := range computetest.Cases[fit.Method](MAP{}, Ensemble{Members: 10}) {
		b.Run(nameOf(m), func(b *testing.B) {
			train := func() {
				fitted(b, uci, m, dataset.Parts{Train: made(300), Validation: made(150)}, Settings{Epochs: 20})
			}
			train()
			for b.Loop() {
				train()
			}
		})
	}
}

// BenchmarkPredict is one batched call of Predict: 100 particles of SWAG and of VI at 150 rows, compilation included,
// as a user pays it.
func BenchmarkPredict(b *testing.B) { computetest.Bench(b, benchmarkPredict) }

func benchmarkPredict(b *testing.B, _ *compute.Engine) {
	for _, m := range computetest.Cases[fit.Method](SWAG{}, VI{}) {
		b.Run(nameOf(m), func(b *testing.B) {
			result := fitted(b, uci, m, dataset.Parts{Train: made(300)}, Settings{Epochs: 4})
			x := made(150).X
			for b.Loop() {
				p, err := result.Posterior.Predict(context.Background(), x)
				if err != nil || p.Particles != 100 {
					b.Fatalf("%d particles, %v", p.Particles, err)
				}
			}
		})
	}
}

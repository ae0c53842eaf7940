package ohsmc

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"gonum.org/v1/gonum/mat"
)

// bench measures the steps of a method on 300 rows without a signal, the validation on so many rows after each
// included. The first step, which compiles, is made before.
func bench(b *testing.B, model bayes.Model, method fit.Method, validated int, settings run.Settings) {
	parts := dataset.Parts{Train: noise(300)}
	if validated > 0 {
		parts.Validation = noise(validated)
	}
	benchOn(b, model, method, parts, settings)
}

// steps are more than any benchmark makes.
var steps = particles.Training{Epochs: 1 << 20, ValidateEvery: 1, Patience: 1 << 30}

func benchOn(b *testing.B, model bayes.Model, method fit.Method, parts dataset.Parts, settings run.Settings) {
	b.Helper()
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		ctx = with(ctx, func(_ *particles.Session, made *particles.StepRecord) {
			if made != nil && !yield(struct{}{}) {
				cancel()
			}
		})
		if _, err := fit.Fit(ctx, model, watched{method}, parts, settings); err != nil {
			b.Error(err)
		}
	})
	defer stop()
	next()
	for b.Loop() {
		if _, made := next(); !made {
			b.Fatal("the run has ended")
		}
	}
}

// boston is a net 13-50-20-5-1, or 13-50-20-1 without the last width.
func boston(last int, stochastic bayes.Partition) bayes.Model {
	hidden := []int{50, 20, last}
	if last == 0 {
		hidden = hidden[:2]
	}
	return bayes.Model{Network: nn.MLP{Hidden: hidden, Activation: nn.GELU}, Likelihood: bayes.Gaussian{StdDev: 1},
		Stochastic: stochastic}
}

// BenchmarkStep is one step of OHSMC on a net whose third layer is stochastic, with batches of 50 of 300 rows:
// resampling, random walk, weights, gradient and Adam, in float32. The time is that of a call and of reading its
// record.
func BenchmarkStep(b *testing.B) { computetest.Bench(b, benchmarkStep) }

func benchmarkStep(b *testing.B, _ *compute.Engine) {
	for _, count := range computetest.Cases(100, 1000, 10_000, 100_000, 200_000) {
		b.Run(fmt.Sprintf("J=%d", count), func(b *testing.B) {
			training := steps
			training.Particles = count
			bench(b, boston(5, bayes.Layers(3)), OpenHorizon{Training: training}, 0, run.Settings{})
		})
	}
}

// BenchmarkValidatedStep is a step and the validation after it, on 150 rows.
func BenchmarkValidatedStep(b *testing.B) { computetest.Bench(b, benchmarkValidatedStep) }

func benchmarkValidatedStep(b *testing.B, _ *compute.Engine) {
	bench(b, boston(5, bayes.Layers(3)), OpenHorizon{Training: steps}, 150, run.Settings{})
}

// BenchmarkHost is what the host does in a step: a step of two particles on one row.
func BenchmarkHost(b *testing.B) { computetest.Bench(b, benchmarkHost) }

func benchmarkHost(b *testing.B, _ *compute.Engine) {
	training := steps
	training.Particles, training.BatchSize = 2, 1
	bench(b, boston(5, bayes.Layers(3)), OpenHorizon{Training: training}, 0, run.Settings{})
}

// BenchmarkConvolution is a step of OHSMC on pictures of 28 by 28, in float32: the paper's network for MNIST, and
// LeNet-5 with the validation on 10 000 of them, of which J = 100 particles are to fit 3 GiB. The first convolution is
// stochastic.
func BenchmarkConvolution(b *testing.B) { computetest.Bench(b, benchmarkConvolution) }

func benchmarkConvolution(b *testing.B, engine *compute.Engine) {
	training, filters, validated := steps, []int{32, 64}, 10_000
	training.Particles, training.Optimiser = 100, train.Adam{Schedule: train.Constant(.002)}
	if testing.Short() {
		training.Particles, filters, validated = 2, []int{2, 2}, 10
	}
	cnn := nn.CNN{Height: side, Width: side, Hidden: []int{256},
		Convolutions: []nn.Conv{{Filters: filters[0], Pool: 2}, {Filters: filters[1], Pool: 2}}}
	for _, c := range computetest.Cases([]struct {
		name      string
		network   nn.Network
		batch     int
		validated int
	}{{"MNIST", cnn, 20, 0}, {"MNIST", cnn, 100, 0}, {"LeNet-5", nn.LeNet5(side, side, 1), 100, validated}}...) {
		b.Run(fmt.Sprintf("%s/B=%d", c.name, c.batch), func(b *testing.B) {
			parts := dataset.Parts{Train: pictures(5 * c.batch)}
			if c.validated > 0 {
				parts.Validation = pictures(c.validated)
			}
			training.BatchSize = c.batch
			benchOn(b, bayes.Model{
				Network: c.network, Likelihood: bayes.Categorical{}, Stochastic: bayes.Layers(1),
				Scaling: bayes.Scaling{KeepFeatures: true},
			}, OpenHorizon{Training: training}, parts, run.Settings{Engine: engine})
			b.ReportMetric(computetest.PeakMemory(b), "peak-GiB") // of the process so far
		})
	}
}

// side is the number of pixels along each side of a picture.
const side = 28

// pictures are of ten classes, at random, with pixels between 0 and 1.
func pictures(rows int) *dataset.Dataset {
	rng := rand.New(rand.NewPCG(1, 2))
	d := &dataset.Dataset{Name: "pictures", Task: dataset.Classification, Target: "class",
		X: mat.NewDense(rows, side*side, nil), Y: make([]float64, rows)}
	for k := range side * side {
		d.Features = append(d.Features, fmt.Sprintf("%d,%d", k/side, k%side))
	}
	for c := range 10 {
		d.Classes = append(d.Classes, fmt.Sprint(c))
	}
	for i := range rows {
		for k := range side * side {
			d.X.(*mat.Dense).Set(i, k, rng.Float64())
		}
		d.Y[i] = float64(i % len(d.Classes))
	}
	return d
}

// noise is a regression without a signal, as the programs that these benchmarks are compared with have it.
func noise(rows int) *dataset.Dataset {
	const dims = 13
	rng := rand.New(rand.NewPCG(1, 2))
	d := &dataset.Dataset{Name: "noise", Task: dataset.Regression, Target: "y", X: mat.NewDense(rows, dims, nil),
		Y: make([]float64, rows)}
	for k := range dims {
		d.Features = append(d.Features, fmt.Sprintf("x%d", k))
	}
	for i := range rows {
		for k := range dims {
			d.X.(*mat.Dense).Set(i, k, rng.NormFloat64())
		}
		d.Y[i] = rng.NormFloat64()
	}
	return d
}

// BenchmarkGuided compares a guided step with each proposal: 1000 particles of the net of BenchmarkStep, and 100 of
// 13-50-20-1 whose first layer is stochastic. A step of SGSMC on batches of 20 stands beside them, with 10 random-walk
// moves before each row.
func BenchmarkGuided(b *testing.B) { computetest.Bench(b, benchmarkGuided) }

func benchmarkGuided(b *testing.B, _ *compute.Engine) {
	few, rows := steps, steps
	few.Particles, rows.BatchSize = 100, 20
	for _, c := range computetest.Cases([]struct {
		name     string
		proposal Proposal
		adapt    float64
	}{
		{"random walk", RandomWalk{}, 0}, {"Langevin, paper's form", Langevin{PaperForm: true}, 0},
		{"Langevin", Langevin{}, 0}, {"Langevin, adapted", Langevin{}, .574}, {"HMC", HMC{Steps: 5}, 0},
	}...) {
		b.Run(c.name+"/layer 3", func(b *testing.B) {
			bench(b, boston(5, bayes.Layers(3)), Guided{Training: steps, Proposal: c.proposal, Adapt: c.adapt}, 0,
				run.Settings{})
		})
		b.Run(c.name+"/layer 1", func(b *testing.B) {
			bench(b, boston(0, bayes.Layers(1)), Guided{Training: few, Proposal: c.proposal, Adapt: c.adapt}, 0,
				run.Settings{})
		})
	}
	b.Run("SMC", func(b *testing.B) {
		bench(b, boston(5, bayes.Layers(3)), SMC{Training: rows}, 0, run.Settings{})
	})
}

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

	"gonum.org/v1/gonum/mat"
)

// steps are more than any benchmark makes.
var steps = particles.Training{Epochs: 1 << 20}

// bench measures the steps of a method on 300 rows without a signal. The first step, which compiles, is made before.
func bench(b *testing.B, model bayes.Model, method fit.Method) {
	b.Helper()
	parts := dataset.Parts{Train: noise(300)}
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		ctx = with(ctx, func(_ *particles.Session, made *particles.StepRecord) {
			if made != nil && !yield(struct{}{}) {
				cancel()
			}
		})
		if _, err := fit.Fit(ctx, model, watched{method}, parts, run.Settings{}); err != nil {
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
// resampling, random walk, weights, gradient and Adam, in float32. Of 100 particles a call makes 64 steps, of 1000 some
// 20, of more one. It takes .37, .38 and .18 of the time of testdata/jax_step.py's calls (J = 100, 1000, 10 000), and
// .49, .39 and .31 of its scan's.
func BenchmarkStep(b *testing.B) { computetest.Bench(b, benchmarkStep) }

func benchmarkStep(b *testing.B, _ *compute.Engine) {
	for _, count := range computetest.Cases(100, 1000, 10_000, 100_000, 200_000) {
		b.Run(fmt.Sprintf("J=%d", count), func(b *testing.B) {
			training := steps
			training.Particles = count
			bench(b, boston(5, bayes.Layers(3)), OpenHorizon{Training: training})
		})
	}
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
			bench(b, boston(5, bayes.Layers(3)), Guided{Training: steps, Proposal: c.proposal, Adapt: c.adapt})
		})
		b.Run(c.name+"/layer 1", func(b *testing.B) {
			bench(b, boston(0, bayes.Layers(1)), Guided{Training: few, Proposal: c.proposal, Adapt: c.adapt})
		})
	}
	b.Run("SMC", func(b *testing.B) {
		bench(b, boston(5, bayes.Layers(3)), SMC{Training: rows})
	})
}

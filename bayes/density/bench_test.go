package density

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// BenchmarkGradient is the value and gradient of J particles' log-posteriors on B rows, all parameters stochastic, in
// float32, with the noise 0.3.
func BenchmarkGradient(b *testing.B) { computetest.Bench(b, benchmarkGradient) }

func benchmarkGradient(b *testing.B, engine *compute.Engine) {
	for _, c := range computetest.Cases([]struct {
		hidden          []int
		activation      nn.Activation
		particles, rows int
	}{
		{[]int{50, 20, 5}, nn.GELU, 20, 20},
		{[]int{50, 20, 5}, nn.GELU, 100, 20},
		{[]int{50, 20, 5}, nn.GELU, 1000, 50},
		{[]int{50, 20, 5}, nn.Tanh, 1000, 50},
		{[]int{50, 20, 5}, nn.ReLU, 1000, 50},
		{[]int{50, 20, 5}, nn.GELU, 10_000, 50},
		{[]int{50, 50}, nn.Tanh, 100, 927},
	}...) {
		b.Run(fmt.Sprintf("hidden=%v/%s/J=%d/B=%d", c.hidden, c.activation, c.particles, c.rows), func(b *testing.B) {
			const inputs = 8
			bound, err := bayes.Model{Network: nn.MLP{Hidden: c.hidden, Activation: c.activation},
				Likelihood: bayes.Gaussian{StdDev: .3}, Stochastic: bayes.All()}.Bind(inputs, 1)
			if err != nil {
				b.Fatal(err)
			}
			plan, err := NewPlan(bound, compute.Float32, Workload{Particles: c.particles, Rows: c.rows})
			if err != nil {
				b.Fatal(err)
			}
			b.Log(plan)
			target := Full{Likelihood{Model: bound, Plan: plan}}
			exec, err := graph.NewExec(engine.Backend(), func(phi, x, y *graph.Node) (value, gradient *graph.Node) {
				return target.Gradient(phi, nil, Batch{X: x, Y: y})
			})
			if err != nil {
				b.Fatal(err)
			}
			defer exec.Finalize()
			rng := rand.New(rand.NewPCG(1, 2))
			normal := func(scale float64, dims ...int) *tensors.Tensor {
				size := 1
				for _, d := range dims {
					size *= d
				}
				flat := make([]float32, size)
				for i := range flat {
					flat[i] = float32(scale * rng.NormFloat64())
				}
				return tensors.FromFlatDataAndDimensions(flat, dims...)
			}
			phi, x, y := normal(.3, c.particles, bound.D), normal(1, c.rows, inputs), normal(1, c.rows)
			call := func() {
				results, err := exec.Call(phi, x, y)
				if err != nil {
					b.Fatal(err)
				}
				// An accelerator computes on after the call returns: one number is waited for.
				if _, err := compute.Columns(results[0], 0, 1); err != nil {
					b.Fatal(err)
				}
				for _, r := range results {
					if err := r.FinalizeAll(); err != nil {
						b.Fatal(err)
					}
				}
			}
			call() // compiles
			for b.Loop() {
				call()
			}
		})
	}
}

package density

import (
	"fmt"
	"math"
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
			bound := computetest.Must(bayes.Model{Network: nn.MLP{Hidden: c.hidden, Activation: c.activation},
				Likelihood: bayes.Gaussian{StdDev: .3}, Stochastic: bayes.All()}.Bind(inputs, 1))
			plan := NewPlan(bound, compute.Float32, Workload{Particles: c.particles, Rows: c.rows})
			b.Log(plan)
			target := Full(Likelihood{Model: bound, Plan: plan})
			normal := normals()
			phi, x, y := normal(.3, c.particles, bound.D), normal(1, c.rows, inputs), normal(1, c.rows)
			benchmarkGraph(b, engine, []any{phi, x, y}, func(inputs []*graph.Node) []*graph.Node {
				value, gradient := target.Gradient(inputs[0], nil, Batch{X: inputs[1], Y: inputs[2]})
				return []*graph.Node{value, gradient}
			})
		})
	}
}

// normals returns a function that draws normal numbers with a standard deviation.
func normals() func(stdDev float64, dims ...int) *tensors.Tensor {
	rng := rand.New(rand.NewPCG(1, 2))
	return func(stdDev float64, dims ...int) *tensors.Tensor {
		size := 1
		for _, d := range dims {
			size *= d
		}
		flat := make([]float32, size)
		for i := range flat {
			flat[i] = float32(stdDev * rng.NormFloat64())
		}
		return tensors.FromFlatDataAndDimensions(flat, dims...)
	}
}

// benchmarkGraph is the time of a graph's evaluation, without its compilation.
func benchmarkGraph(
	b *testing.B, engine *compute.Engine, inputs []any, build func(inputs []*graph.Node) []*graph.Node,
) {
	exec := computetest.Must(graph.NewExec(engine.Backend(), build))
	defer exec.Finalize()
	call := func() {
		results := computetest.Must(exec.Call(inputs...))
		// An accelerator computes on after the call returns: one number is waited for.
		computetest.Must(compute.Float64s(results[0]))
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
}

// BenchmarkLeNet5 is LeNet-5 on pictures of 28 x 28, in float32: the log-likelihoods of 20 particles on 100 of them
// (forward), and the gradient too (gradient): each particle's with respect to its own numbers if all layers are
// stochastic, and that of the evidence with respect to the shared ones if only the first is. testdata/jax_lenet5.py is
// the same in plain JAX.
func BenchmarkLeNet5(b *testing.B) { computetest.Bench(b, benchmarkLeNet5) }

func benchmarkLeNet5(b *testing.B, engine *compute.Engine) {
	particles, rows := 20, 100
	if testing.Short() {
		particles, rows = 2, 2
	}
	const side, classes = 28, 10
	for _, c := range computetest.Cases([]struct {
		stochastic string
		forward    bool
	}{{"first", true}, {"first", false}, {"all", true}, {"all", false}}...) {
		name := fmt.Sprintf("stochastic=%s/gradient/J=%d/B=%d", c.stochastic, particles, rows)
		if c.forward {
			name = fmt.Sprintf("stochastic=%s/forward/J=%d/B=%d", c.stochastic, particles, rows)
		}
		b.Run(name, func(b *testing.B) {
			partition := bayes.All()
			if c.stochastic == "first" {
				partition = bayes.Layers(1)
			}
			bound, err := bayes.Model{Network: nn.LeNet5(side, side, 1), Likelihood: bayes.Categorical{},
				Stochastic: partition}.Bind(side*side, classes)
			if err != nil {
				b.Fatal(err)
			}
			plan := NewPlan(bound, compute.Float32, Workload{Particles: particles, Rows: rows, Forward: c.forward})
			b.Log(plan)
			likelihood := Likelihood{Model: bound, Plan: plan}
			labels := make([]float32, rows)
			for i := range labels {
				labels[i] = float32(i % classes)
			}
			normal := normals()
			inputs := []any{normal(.2, particles, bound.D), normal(.3, rows, side*side),
				tensors.FromFlatDataAndDimensions(labels, rows), normal(.05, max(bound.W, 1))}
			benchmarkGraph(b, engine, inputs, func(inputs []*graph.Node) []*graph.Node {
				phi, psi, batch := inputs[0], inputs[3], Batch{X: inputs[1], Y: inputs[2]}
				switch {
				case c.forward:
					return []*graph.Node{likelihood.LogLikelihood(phi, psi, batch)}
				case bound.W == 0:
					value, gradient := Full(likelihood).Gradient(phi, psi, batch)
					return []*graph.Node{value, gradient}
				}
				equal := graph.BroadcastToDims(graph.ConstAs(phi, -math.Log(float64(particles))), particles)
				e := likelihood.Reweight(phi, psi, equal, batch, LikelihoodPotential)
				return []*graph.Node{e.LogLikelihood, e.Gradient}
			})
		})
	}
}

package mcmc_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// BenchmarkNUTS is the posterior of an MLP 8-50-50-1 (tanh, noise 0.3, D = 3051) on 927 rows, 100 chains, step 0.003 in
// units of the prior's scales, in float32: the gradient alone, and a move of NUTS. Where no tree ends before MaxDepth a
// chain needs no waiting for others, so each of a move's gradients counts.
func BenchmarkNUTS(b *testing.B) { computetest.Bench(b, benchmarkNUTS) }

func benchmarkNUTS(b *testing.B, _ *compute.Engine) {
	const inputs = 8
	chains, rows := 100, 927
	if testing.Short() {
		chains, rows = 2, 20
	}
	fanIn := func(n float64) float64 { return 1 / math.Sqrt(n) }
	bound, err := bayes.Model{
		Network:    nn.MLP{Hidden: []int{50, 50}, Activation: nn.Tanh},
		Likelihood: bayes.Gaussian{StdDev: .3},
		Prior:      bayes.Normal{StdDev: 1, PerLayer: map[int]float64{1: fanIn(inputs), 2: fanIn(50), 3: fanIn(50)}},
		Stochastic: bayes.All(),
	}.Bind(inputs, 1)
	if err != nil {
		b.Fatal(err)
	}
	plan, err := density.NewPlan(bound, compute.Float32, density.Workload{Particles: chains, Rows: rows})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	x, y, phi := make([]float32, rows*inputs), make([]float32, rows), make([]float32, chains*bound.D)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for i := range y {
		y[i] = float32(math.Sin(2*float64(x[i*inputs])) + .3*rng.NormFloat64())
	}
	for i := range phi {
		phi[i] = float32(.5 * rng.NormFloat64() * bound.Scales()[i%bound.D])
	}
	data := []any{tensors.FromFlatDataAndDimensions(x, rows, inputs), tensors.FromFlatDataAndDimensions(y, rows)}
	begin := tensors.FromFlatDataAndDimensions(phi, chains, bound.D)
	posterior := func(x, y *graph.Node) density.LogPosterior {
		full := density.Full{Likelihood: density.Likelihood{Model: bound, Plan: plan}}
		return density.At(full, nil, density.Batch{X: x, Y: y})
	}
	b.Run("gradient", func(b *testing.B) {
		exec := newExec(b, func(a []*graph.Node) []*graph.Node {
			logDensity, gradient := posterior(a[0], a[1]).Gradient(a[2])
			return []*graph.Node{logDensity, gradient}
		})
		args := append(slices.Clone(data), begin)
		finalize(call(b, exec, args))
		for b.Loop() {
			finalize(call(b, exec, args))
		}
		b.ReportMetric(float64(chains*b.N)/b.Elapsed().Seconds(), "gradients/s")
	})
	for _, maxDepth := range computetest.Cases(6, 10) {
		b.Run(fmt.Sprintf("move/depth=%d", maxDepth), func(b *testing.B) {
			kernel := mcmc.NUTS{StepSize: .003, MaxDepth: maxDepth}
			var own []string
			pack := func(s mcmc.State) []*graph.Node {
				nodes := []*graph.Node{s.Phi, s.LogDensity, s.Gradient}
				for _, name := range own {
					nodes = append(nodes, s.Auxiliary[name])
				}
				return nodes
			}
			start := newExec(b, func(a []*graph.Node) []*graph.Node {
				s := mcmc.Start(kernel, random.New(a[0].Graph(), 1), a[2], posterior(a[0], a[1]))
				own = slices.Sorted(maps.Keys(s.Auxiliary))
				return pack(s)
			})
			move := newExec(b, func(a []*graph.Node) []*graph.Node {
				s := mcmc.State{Phi: a[3], LogDensity: a[4], Gradient: a[5], Auxiliary: map[string]*graph.Node{}}
				for i, name := range own {
					s.Auxiliary[name] = a[6+i]
				}
				tuning := mcmc.Tuning{Scale: graph.Const(a[0].Graph(), bound.Scales())}
				next, info := kernel.Move(random.New(a[0].Graph(), 2).At(a[2]), s, posterior(a[0], a[1]), tuning)
				return append(pack(next), graph.Stack([]*graph.Node{info.Complete, info.Length, info.Divergent}, 0))
			})
			state := call(b, start, append(slices.Clone(data), begin))
			step := uint32(0)
			once := func() {
				args := append(slices.Clone(data), step)
				for _, s := range state {
					args = append(args, s)
				}
				next := call(b, move, args)
				finalize(state)
				last := len(next) - 1
				record, err := compute.Float64s(next[last])
				if err != nil {
					b.Fatal(err)
				}
				for i, divergent := range record[2*chains:] {
					if divergent != 0 {
						b.Fatalf("chain %d diverges", i)
					}
				}
				finalize(next[last:])
				state, step = next[:last], step+1
			}
			once()
			for b.Loop() {
				once()
			}
			b.ReportMetric(float64(chains*b.N)/b.Elapsed().Seconds(), "gradients/s")
			finalize(state)
		})
	}
}

func newExec(b *testing.B, fn func(args []*graph.Node) []*graph.Node) *graph.Exec {
	b.Helper()
	engine, err := compute.Default()
	if err != nil {
		b.Fatal(err)
	}
	exec, err := graph.NewExec(engine.Backend(), fn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(exec.Finalize)
	return exec
}

func call(b *testing.B, exec *graph.Exec, args []any) []*tensors.Tensor {
	b.Helper()
	out, err := exec.Call(args...)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

func finalize(all []*tensors.Tensor) {
	for _, t := range all {
		t.MustFinalizeAll()
	}
}

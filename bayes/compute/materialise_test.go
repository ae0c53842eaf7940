package compute_test

import (
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	. "github.com/gomlx/gomlx/core/graph"
)

// compared runs two ways to build one graph as sub-benchmarks on the same inputs.
func compared(b *testing.B, engine *compute.Engine, inputs []any, ways map[string]func(a []*Node) *Node) {
	for name, build := range ways {
		b.Run(name, func(b *testing.B) {
			exec := MustNewExec(engine.Backend(), func(a []*Node) *Node { return build(a) })
			defer exec.Finalize()
			call := func() {
				out := computetest.Must(exec.Call(inputs...))
				out[0].FinalizeAll() //nolint:errcheck // freeing a result
			}
			call() // compiles
			for b.Loop() {
				call()
			}
		})
	}
}

// BenchmarkMaterialise is the product of a layer in blocks of 8 particles, [13, 20, 25, 50, 8] summed over the 25
// inputs, which are a GELU: stored once, or left to the compiler, which evaluates each of them once for each of the 20
// outputs.
func BenchmarkMaterialise(b *testing.B) { computetest.Bench(b, benchmarkMaterialise) }

func benchmarkMaterialise(b *testing.B, engine *compute.Engine) {
	const blocks, outs, ins, rows, c = 13, 20, 25, 50, 8
	x := compute.Floats(compute.Float32, make([]float64, blocks*ins*rows*c), blocks, ins, rows, c)
	w := compute.Floats(compute.Float32, make([]float64, blocks*outs*ins*c), blocks, outs, ins, c)
	gelu := func(x *Node) *Node { return Mul(x, AddScalar(Erf(MulScalar(x, .7071)), 1)) }
	product := func(h, w *Node) *Node { return ReduceSum(Mul(ExpandAxes(h, 1), ExpandAxes(w, 3)), 2) }
	compared(b, engine, []any{x, w}, map[string]func(a []*Node) *Node{
		"stored":   func(a []*Node) *Node { return product(compute.Materialise(gelu(a[0]), a[0]), a[1]) },
		"repeated": func(a []*Node) *Node { return product(gelu(a[0]), a[1]) },
	})
}

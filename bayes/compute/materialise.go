package compute

import "github.com/gomlx/gomlx/core/graph"

// Materialise is x, evaluated once and stored. It is x divided by an opaque 1: the compiler never duplicates a
// division, and cannot simplify this one, since the divisor is computed from an element of stored, any tensor that is
// in memory already.
//
// It is for code that builds graphs, within the library and beyond it. XLA's compiler for CPUs fuses elementwise
// operations into the loops that use their results, which saves memory, but then each loop, and in a product each step
// of its inner loop, evaluates them again. BenchmarkMaterialise measures the effect.
func Materialise(x, stored *graph.Node) *graph.Node {
	return MaterialiseBeside(x, Element(stored))
}

// MaterialiseBeside is Materialise with a whole tensor that x's shape broadcasts, such as biases. Unlike with one
// number the compiler then keeps x in the shape that it has here, in which its loops may be faster.
func MaterialiseBeside(x, stored *graph.Node) *graph.Node {
	stored = graph.StopGradient(stored)
	positive := graph.GreaterThan(stored, graph.ZerosLike(stored)) // false for NaN
	one := graph.Add(graph.ConvertDType(positive, x.DType()), graph.ConvertDType(graph.LogicalNot(positive), x.DType()))
	return graph.Div(x, one)
}

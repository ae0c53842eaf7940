package compute

import "github.com/gomlx/gomlx/core/graph"

// Hold is x, evaluated once and stored. XLA's compiler for CPUs evaluates elementwise functions anew in each loop that uses them, and in a product
// each element is used many times; but it never repeats what it counts as expensive, such as a division. So x is divided by a one of which the
// compiler does not know that it is one: it is taken from some tensor that is stored already.
func Hold(x, stored *graph.Node) *graph.Node {
	sample := graph.StopGradient(First(stored))
	positive := graph.GreaterThan(sample, graph.ZerosLike(sample)) // false for NaN
	one := graph.Add(graph.ConvertDType(positive, x.DType()), graph.ConvertDType(graph.LogicalNot(positive), x.DType()))
	return graph.Div(x, one)
}

// First is the first number of x, a scalar.
func First(x *graph.Node) *graph.Node {
	corner := make([]graph.SliceAxisSpec, x.Rank())
	for axis := range corner {
		corner[axis] = graph.AxisRange(0, 1)
	}
	return graph.Reshape(graph.Slice(x, corner...))
}

package compute

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Hold is x, evaluated once and stored. XLA's compiler for CPUs evaluates elementwise functions anew in each loop that uses them, and in a product
// each element is used many times; but it never repeats what it counts as expensive, such as a division. So x is divided by a one of which the
// compiler does not know that it is one: it is taken from some tensor that is stored already.
func Materialise(x, stored *graph.Node) *graph.Node {
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

// Apart is x, [n] and small, computed apart from the loops that use it. Hold makes a compiler store what several loops use, but where one alone does, it
// still writes x's operations into that loop. An ordering is never written into a loop: x is put into the order that it has already.
func MaterialiseKey(x *graph.Node) *graph.Node {
	g := x.Graph()
	inOrder := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		parameter := func(name string, dtype dtypes.DType) *graph.Node { return graph.Parameter(g, name, shapes.Make(dtype)) }
		first, second := parameter("first", dtypes.Int32), parameter("second", dtypes.Int32)
		parameter("first value", x.DType())
		parameter("second value", x.DType())
		return []*graph.Node{graph.LessThan(first, second)}
	})
	place := graph.Iota(g, shapes.Make(dtypes.Int32, x.Shape().Dim(0)), 0)
	return graph.SortFunc(inOrder, 0, true, place, x)[1]
}

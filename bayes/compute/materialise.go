package compute

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// This file is for code that builds graphs, within the library and beyond it. Nothing in it changes a value: it keeps
// XLA's compiler for CPUs from computing one thing again and again. The compiler fuses elementwise operations into the
// loops that use their results, which saves memory, but then each loop, and in a product each step of its inner loop,
// evaluates them anew. BenchmarkMaterialise, and BenchmarkKey of package random, measure what that costs and whether it
// is still prevented.

// Materialise is x, evaluated once and stored. It is x divided by an opaque 1: the compiler never repeats a division,
// and cannot know that this divisor is 1, since it is computed from a number of stored, which is any tensor that lies
// in memory already.
func Materialise(x, stored *graph.Node) *graph.Node {
	sample := graph.StopGradient(First(stored))
	positive := graph.GreaterThan(sample, graph.ZerosLike(sample)) // false for NaN
	one := graph.Add(graph.ConvertDType(positive, x.DType()), graph.ConvertDType(graph.LogicalNot(positive), x.DType()))
	return graph.Div(x, one)
}

// MaterialiseKey is x, [n] and small, sorted by index: it stays as it is, but XLA never fuses a sort. Materialise makes
// the compiler store what several loops use; where one loop alone uses x, its operations still become part of that
// loop, as those that make the key of random numbers would become part of the loop over the numbers.
func MaterialiseKey(x *graph.Node) *graph.Node {
	g := x.Graph()
	inOrder := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		parameter := func(name string, dtype dtypes.DType) *graph.Node {
			return graph.Parameter(g, name, shapes.Make(dtype))
		}
		first, second := parameter("first", dtypes.Int32), parameter("second", dtypes.Int32)
		parameter("first value", x.DType())
		parameter("second value", x.DType())
		return []*graph.Node{graph.LessThan(first, second)}
	})
	place := graph.Iota(g, shapes.Make(dtypes.Int32, x.Shape().Dim(0)), 0)
	return graph.SortFunc(inOrder, 0, true, place, x)[1]
}

// First is the number of x at index 0 on every axis, a scalar: the cheapest thing that depends on x.
func First(x *graph.Node) *graph.Node {
	corner := make([]graph.SliceAxisSpec, x.Rank())
	for axis := range corner {
		corner[axis] = graph.AxisRange(0, 1)
	}
	return graph.Reshape(graph.Slice(x, corner...))
}

package compute

import (
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// shortRow is the longest row whose sum is left to a reduction. XLA's CPU compiler evaluates all that a reduction over
// the last axis is fused with number by number, and cuts long ones into windows, which are slower still; a product with
// ones takes what is summed from memory, where it was computed in whole vectors.
const shortRow = 8

// RowSums is the sum of each row of x, [J, n], in a graph: [J].
func RowSums(x *graph.Node) *graph.Node {
	n := x.Shape().Dim(1)
	if n <= shortRow {
		return ReduceSum(x, 1)
	}
	ones := x.Shape().Clone()
	ones.Dimensions = []int{n}
	return Einsum("jn,n->j", x, Ones(x.Graph(), ones))
}

// RowsAll says which rows of a table of truth values, [J, n], are true throughout: bool [J]. dtype is the type to count
// in.
func RowsAll(x *graph.Node, dtype DType) *graph.Node {
	n := x.Shape().Dim(1)
	if n <= shortRow {
		return LogicalAll(x, 1)
	}
	return GreaterThan(RowSums(ConvertDType(x, dtype)), Scalar(x.Graph(), dtype, float64(n)-0.5))
}

package nn

import (
	"gobnn/bayes/compute"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Block reshapes x, [J, n], into blocks of c particles, [ceil(J/c), n, c]: particle j is at position j mod c of block
// floor(j/c). The last block is padded with zeros.
func Block(x *graph.Node, c int) *graph.Node {
	particles, n := x.Shape().Dim(0), x.Shape().Dim(1)
	if c == 1 {
		return graph.Reshape(x, particles, n, 1)
	}
	blocks, stored := (particles+c-1)/c, x
	if missing := blocks*c - particles; missing > 0 {
		x = graph.Concatenate([]*graph.Node{x, graph.Zeros(x.Graph(), shapes.Make(x.DType(), missing, n))}, 0)
	}
	return compute.Materialise(graph.TransposeAllAxes(graph.Reshape(x, blocks, c, n), 0, 2, 1), stored)
}

// Unblock is the inverse of Block for J particles: [ceil(J/c), n, c] to [J, n].
func Unblock(x *graph.Node, particles int) *graph.Node {
	blocks, n, c := x.Shape().Dim(0), x.Shape().Dim(1), x.Shape().Dim(2)
	if c > 1 {
		x = graph.TransposeAllAxes(x, 0, 2, 1)
	}
	x = graph.Reshape(x, blocks*c, n)
	if blocks*c > particles {
		x = graph.Slice(x, graph.AxisRange(0, particles))
	}
	return x
}

// holdGradient is z, with a gradient that is evaluated once and stored, not again in each of its uses.
func holdGradient(z, stored *graph.Node) *graph.Node {
	return graph.IdentityWithCustomGradient(z, func(_, v *graph.Node) *graph.Node {
		return compute.Materialise(v, stored)
	})
}

// addToRows is z, [J/c, out, B, c], plus a vector for each particle, [J/c, out, c]. The gradient with respect to the
// vector, a sum over rows, is computed as sumOfProducts does.
func addToRows(z, vector *graph.Node) *graph.Node {
	const rows = 2
	ones := graph.Ones(z.Graph(), shapes.Make(z.DType(), 1, 1, z.Shape().Dim(rows), 1))
	return withGradient(
		func(z, vector *graph.Node) *graph.Node { return graph.Add(z, graph.ExpandAxes(vector, rows)) }, z, vector,
		func(v *graph.Node) *graph.Node { return v },
		func(v *graph.Node) *graph.Node { return sumOfProducts(v, ones, rows) })
}

package bayes

import (
	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
)

// A linearised posterior's prediction is f(x; phi*) + J(x) (phi_j - phi*), J being the Jacobian of the network's
// outputs in phi at phi*, [C, D]. GoMLX has reverse-mode differentiation only, so J is computed by one pass for each
// output: with each row a particle of its own, a pass gives that output's gradients at all rows. Each prediction is
// then a matrix product, [J, D] by [D, C B], without a pass through the network.

// linearisedBytes is the most memory for the Jacobian of one block of rows.
const linearisedBytes = 32 << 20

// linearisedRows is the number of rows in a block. A pass holds the parameters' gradients besides J, so that a row
// takes about twice its part of J.
func linearisedRows(bound *BoundModel, dtype compute.DType) int {
	perRow := 2 * (bound.Width + 1) * bound.D * int(dtype.Size())
	return min(predictRows, max(1, linearisedBytes/perRow))
}

// linearisedOutputs is f(x; at) + J(x) (phi_j - at), [A, Width, rows], for each particle of phi, [A, D].
func linearisedOutputs(bound *BoundModel, x, phi, psi, at *graph.Node) *graph.Node {
	outputs, copies, _ := bound.PerExample(at, psi, x) // [rows, Width]
	change := graph.Sub(phi, graph.ExpandAxes(at, 0))  // [A, D]
	var parts []*graph.Node
	for c := range bound.Width {
		output := graph.Slice(outputs, graph.AxisRange(), graph.AxisRange(c, c+1)) // [rows, 1]
		jacobian := graph.Gradient(graph.ReduceAllSum(output), copies)[0]          // [rows, D]
		moved := graph.Einsum("jd,bd->jb", change, jacobian)
		parts = append(parts, graph.ExpandAxes(graph.Add(moved, graph.Transpose(output, 0, 1)), 1))
	}
	return graph.Concatenate(parts, 1)
}

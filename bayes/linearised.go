package bayes

import (
	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
)

// A linearised posterior's prediction is f(x; phi*) + J(x) (phi_j - phi*), J being the Jacobian of the network's outputs in phi at phi*, [C, D]. GoMLX differentiates
// in reverse only, so J is made, one pass for each output: with each row a particle of its own, a pass gives that output's gradient at all rows. Particles then cost a product
// of matrices, [J, D] by [D, C B], and no pass through the network.

// linearisedBytes is what the Jacobian of one block of rows may take.
const linearisedBytes = 32 << 20

// linearisedRows is how many rows are evaluated at once. A pass holds the gradients of the parameters beside what it has made of J, so that a row takes about
// twice its part of J.
func (p *Posterior) linearisedRows() int {
	perRow := 2 * (p.bound.Outputs + 1) * p.bound.D * int(p.phi.DType().Size())
	return min(predictRows, max(1, linearisedBytes/perRow))
}

// compileLinearised builds x, phi, psi (if any) and phi* to outputs [J, C, rows].
func (p *Posterior) compileLinearised(engine *compute.Engine, _ int) (*graph.Exec, error) {
	return graph.NewExec(engine.Backend(), func(args []*graph.Node) *graph.Node {
		x, phi, at := args[0], args[1], args[len(args)-1]
		var psi *graph.Node
		if len(args) > 3 {
			psi = args[2]
		}
		outputs, copies, _ := p.bound.PerExample(at, psi, x) // [rows, C]
		change := graph.Sub(phi, graph.ExpandAxes(at, 0))    // [J, D]
		var parts []*graph.Node
		for c := range p.bound.Outputs {
			output := graph.Slice(outputs, graph.AxisRange(), graph.AxisRange(c, c+1)) // [rows, 1]
			jacobian := graph.Gradient(graph.ReduceAllSum(output), copies)[0]          // [rows, D]
			moved := graph.Einsum("jd,bd->jb", change, jacobian)
			parts = append(parts, graph.ExpandAxes(graph.Add(moved, graph.Transpose(output, 0, 1)), 1))
		}
		return graph.Concatenate(parts, 1)
	})
}

package density

import (
	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	. "github.com/gomlx/gomlx/core/graph"
)

// features is the output of the layers before the first stochastic one, [width, B]: in parts of the rows where the
// activations of all would take much memory.
func (l Likelihood) features(prefix nn.Params, batch Batch, dtype compute.DType) nn.Value {
	x := batch.X
	apply := func(prefix nn.Params, x *Node) nn.Value { return l.Model.Prefix(prefix, bayes.Numbers(x, dtype)) }
	p := l.partsOfPrefix(batch, dtype)
	if p.count == 1 {
		return apply(prefix, x)
	}
	one := apply(prefix, Slice(x, AxisRange(0, 1))) // for its shape: XLA removes it
	shape := one.Node.Shape().Clone()
	shape.Dimensions[1] = p.rows
	outer := append([]*Node{x}, prefix.Nodes()...)
	none := []*Node{Zeros(x.Graph(), shape)}
	one.Node = compute.Loop(p.count, outer, none, func(i *Node, outer, carried []*Node) []*Node {
		from := p.from(i)
		part := apply(prefix.With(outer[1:]), p.of(outer[0], from, 0))
		return []*Node{DynamicUpdateSlice(carried[0], part.Node, []*Node{Const(i.Graph(), int32(0)), from})}
	})[0]
	return one
}

// partsOfPrefix are the parts of the rows in which the layers before the first stochastic one are evaluated: one where
// there are no loops.
func (l Likelihood) partsOfPrefix(batch Batch, dtype compute.DType) parts {
	rows := batch.X.Shape().Dim(0)
	if !compute.CanLoop(batch.X.Graph()) {
		return parts{rows, 1}
	}
	bytes := int64(activationCopies*l.Model.PrefixWidth()*rows) * int64(dtype.Size())
	return parts{rows, max(partsOf(bytes, rows), 1)}
}

// inParts says whether the rows of a pass, or of the layers before the first stochastic one if they have parameters, are
// cut into parts.
func (e *evaluation) inParts() bool {
	if e.Plan.Parts > 1 {
		return true
	}
	return e.batch.Features == nil && len(e.prefix) > 0 && e.partsOfPrefix(e.batch, e.phi.DType()).count > 1
}

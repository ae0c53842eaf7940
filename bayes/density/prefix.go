package density

import (
	"maps"
	"slices"

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

// gradientOfPrefix propagates the gradient with respect to the prefix's output, [width, B], back through the prefix:
// the gradients with respect to its parameters, by name.
func (e *evaluation) gradientOfPrefix(gradient *Node) map[string]*Node {
	p, leaves := e.partsOfPrefix(e.batch, gradient.DType()), e.prefix.Nodes()
	var sums []*Node
	if p.count == 1 {
		sums = Gradient(ReduceAllSum(Mul(e.input.Node, gradient)), leaves...)
	} else {
		var none []*Node
		for _, leaf := range leaves {
			none = append(none, ZerosLike(leaf))
		}
		outer := append([]*Node{e.batch.X, gradient}, leaves...)
		sums = compute.Loop(p.count, outer, none, func(i *Node, outer, carried []*Node) []*Node {
			from, leaves := p.from(i), outer[2:]
			x := bayes.Numbers(p.of(outer[0], from, 0), gradient.DType())
			output := e.Model.Prefix(e.prefix.With(leaves), x).Node
			ofPart := p.of(outer[1], from, 1)
			if p.overlap() { // the part before has these rows
				counted := GreaterOrEqual(rowNumbers(i.Graph(), p.size()), p.before(i))
				counted = BroadcastToDims(ExpandAxes(counted, 0), ofPart.Shape().Dimensions...)
				ofPart = Where(counted, ofPart, ZerosLike(ofPart))
			}
			return added(carried, Gradient(ReduceAllSum(Mul(output, StopGradient(ofPart))), leaves...))
		})
	}
	byName := map[string]*Node{}
	for i, name := range slices.Sorted(maps.Keys(e.prefix)) { // the order of Nodes
		byName[name] = sums[i]
	}
	return byName
}

// added is the sum of two lists of nodes, one by one.
func added(a, b []*Node) []*Node {
	sums := make([]*Node, len(a))
	for i := range a {
		sums[i] = Add(a[i], b[i])
	}
	return sums
}

package density

import (
	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// pass is a computation on each chunk of particles: a compute.Pass with an evaluation.
type pass struct {
	outer []*Node // further nodes for chunk, such as [J] weights
	rows  [][]int // the dims, after the particles' axis, of each result per particle, of phi's type
	none  []*Node // the sums over no particles
	// chunk computes the results per particle, [c, ...], and sums over particles. It must use no other nodes than its
	// arguments, since it may be the body of a loop.
	chunk    func(e *evaluation, c chunk, outer []*Node) (rows, sums []*Node)
	merge    func(a, b []*Node) []*Node // merges the sums of two parts
	captures bool                       // chunk uses other nodes: no loop
}

// over makes a pass over all particles: rows are [J, ...].
func (e *evaluation) over(p pass) (rows, sums []*Node) {
	used := e.used()
	return e.Plan.Over(e.phi, compute.Pass{
		Outer: append(used, p.outer...), Rows: p.rows, None: p.none, Merge: p.merge, Captures: p.captures,
		Chunk: func(s compute.Span, phi *Node, outer []*Node) (rows, sums []*Node) {
			inner := e.with(outer[:len(used)])
			if s.Part != nil {
				inner = inner.part(s.Part)
			}
			return p.chunk(inner, inner.chunk(s, phi), outer[len(used):])
		},
	})
}

// used returns all nodes that the evaluation of a chunk uses. with replaces them by the given nodes, as within a loop.
func (e *evaluation) used() []*Node {
	nodes := append([]*Node{e.input.Node, e.batch.Y}, e.common.Nodes()...)
	if e.batch.Count != nil {
		nodes = append(nodes, e.batch.Count)
	}
	return nodes
}

func (e *evaluation) with(nodes []*Node) *evaluation {
	inner := *e
	inner.input.Node = nodes[0]
	inner.batch = Batch{Y: nodes[1]}
	inner.common = e.common.With(nodes[2:])
	if e.batch.Count != nil {
		inner.batch.Count = nodes[2+len(e.common)]
	}
	return &inner
}

// part is the evaluation of one part of the rows, of those that a plan cuts them into. The last part may begin with
// rows of the part before, which do not count in it.
func (e *evaluation) part(number *Node) *evaluation {
	p := parts{e.batch.rows(), e.Plan.Parts}
	inner := *e
	inner.whole, inner.from = p.rows, p.from(number)
	inner.input.Node = p.of(e.input.Node, inner.from, e.input.Node.Rank()-1)
	inner.batch = Batch{Y: p.of(e.batch.Y, inner.from, 0)}
	if e.batch.Count != nil {
		inner.batch.Count = Sub(e.batch.Count, ConvertDType(inner.from, e.batch.Count.DType()))
	}
	if p.overlap() {
		inner.batch.before = Sub(MulScalar(number, float64(p.size())), inner.from) // in the part before, too
	}
	return &inner
}

// ofWhole puts a part's columns, [n, rows of the part], where they are among those of all rows, and a number elsewhere;
// columns of all rows stay as they are.
func (e *evaluation) ofWhole(columns *Node, elsewhere float64) *Node {
	if e.from == nil {
		return columns
	}
	if before := e.batch.before; before != nil {
		counted := GreaterOrEqual(rowNumbers(columns.Graph(), e.batch.rows()), before)
		counted = BroadcastToDims(ExpandAxes(counted, 0), columns.Shape().Dimensions...)
		columns = Where(counted, columns, FillScalar(columns.Graph(), columns.Shape(), elsewhere))
	}
	shape := columns.Shape().Clone()
	shape.Dimensions[1] = e.whole
	zero := Const(columns.Graph(), int32(0))
	return DynamicUpdateSlice(FillScalar(columns.Graph(), shape, elsewhere), columns, []*Node{zero, e.from})
}

// parts are equal parts of rows. If these do not divide, the last begins earlier.
type parts struct{ rows, count int }

func (p parts) size() int { return (p.rows + p.count - 1) / p.count }

func (p parts) overlap() bool { return p.size()*p.count > p.rows }

// from is a part's first row, an int32 scalar, as its number is.
func (p parts) from(number *Node) *Node {
	from := MulScalar(number, float64(p.size()))
	if p.overlap() {
		from = Min(from, Const(number.Graph(), int32(p.rows-p.size())))
	}
	return from
}

// of is a part's rows of x, whose rows are along the given axis.
func (p parts) of(x, from *Node, axis int) *Node {
	starts, sizes := make([]*Node, x.Rank()), x.Shape().Clone().Dimensions
	for i := range starts {
		starts[i] = Const(x.Graph(), int32(0))
	}
	starts[axis], sizes[axis] = from, p.size()
	return DynamicSlice(x, starts, sizes)
}

// rowNumbers are 0 to n-1, int32 [n].
func rowNumbers(g *Graph, n int) *Node { return Iota(g, shapes.Make(dtypes.Int32, n), 0) }

// features is the output of the layers before the first stochastic one, [width, B]: in parts of the rows where the
// activations of all would take much memory, if they may be cut.
func (l Likelihood) features(prefix nn.Params, batch Batch, dtype compute.DType, cut bool) nn.Value {
	x := batch.X
	apply := func(prefix nn.Params, x *Node) nn.Value { return l.Model.Prefix(prefix, bayes.Numbers(x, dtype)) }
	p := l.partsOfPrefix(batch, dtype)
	if p.count == 1 || !cut {
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
	bytes := int64(activationCopies*l.Model.PrefixWidth()*rows) * int64(dtype.Size())
	count := max(partsOf(bytes, rows), 1)
	if count > 1 && !compute.CanLoop(batch.X.Graph()) {
		count = 1
	}
	return parts{rows, count}
}

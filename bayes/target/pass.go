package target

import (
	"gobnn/bayes/compute"

	. "github.com/gomlx/gomlx/core/graph"
)

// pass is what is computed of each chunk of particles: compute.Pass of evaluations.
type pass struct {
	outer []*Node // what chunk uses beside the evaluation, such as [J] weights
	rows  [][]int // the dims, behind the particles' axis, of what it gives for each particle, of phi's type
	none  []*Node // the sums of no chunk
	// chunk gives what there is for each particle, [c, ...], and sums over particles. It uses the evaluation and the
	// outer nodes that it is given, and no others, since it may stand in a loop.
	chunk    func(e *evaluation, c chunk, outer []*Node) (rows, sums []*Node)
	merge    func(a, b []*Node) []*Node // sums of two parts
	captures bool                       // chunk uses other nodes nevertheless
}

// over makes a pass over all particles: rows are [J, ...].
func (e *evaluation) over(p pass) (rows, sums []*Node) {
	used := e.used()
	return e.Plan.Over(e.phi, compute.Pass{
		Outer: append(used, p.outer...), Rows: p.rows, None: p.none, Merge: p.merge, Captures: p.captures,
		Chunk: func(s compute.Span, phi *Node, outer []*Node) (rows, sums []*Node) {
			inner := e.with(outer[:len(used)])
			return p.chunk(inner, inner.chunk(s, phi), outer[len(used):])
		},
	})
}

// used are all nodes that the evaluation of a chunk uses, and with is the evaluation with others in their place: those
// that stand for them within a loop.
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

package density

import (
	"gobnn/bayes/compute"

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

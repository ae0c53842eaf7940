package target

import (
	"maps"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// pass is what is computed of each chunk of particles.
type pass struct {
	outer []*Node // what chunk uses beside the evaluation, such as [J] weights
	rows  [][]int // the dims, behind the particles' axis, of what it gives for each particle, of phi's type
	none  []*Node // the sums of no chunk
	// chunk gives what there is for each particle, [c, ...], and sums over particles. It uses the evaluation and the
	// outer nodes that it is given, and no others, since it may stand in a loop.
	chunk func(e *evaluation, c chunk, outer []*Node) (rows, sums []*Node)
	merge func(a, b []*Node) []*Node // sums of two parts
	// captures says that chunk uses other nodes nevertheless: it never stands in a loop.
	captures bool
}

// over makes a pass over all particles: rows are [J, ...]. Where there are many chunks, and the backend can, they are a
// loop, which is compiled once; otherwise each is a part of the graph.
func (e *evaluation) over(p pass) (rows, sums []*Node) {
	together := max(e.Plan.Concurrent, 1)
	turn := together * e.Plan.Chunk // particles of a turn of the loop
	turns := e.Plan.Particles / max(turn, 1)
	if turns < 2 || p.captures || e.Plan.Devices > 1 || !compute.CanLoop(e.phi.Graph()) {
		e.Plan = e.Plan.Unrolled()
		return e.unrolled(p, 0, nil)
	}

	outer, inside := e.outside(p)
	var carried []*Node
	for _, dims := range p.rows {
		carried = append(carried, Zeros(e.phi.Graph(), rowsOf(e.phi, turns*turn, dims)))
	}
	results := compute.Loop(turns, outer, append(carried, p.none...), func(i *Node, outer, carried []*Node) []*Node {
		inner, own := inside(outer)
		rows, sums := slices.Clone(carried[:len(p.rows)]), carried[len(p.rows):]
		for k := range together {
			at := AddScalar(MulScalar(i, float64(turn)), float64(k*e.Plan.Chunk))
			c := inner.chunk(span{count: e.Plan.Chunk, at: at}, nil)
			ofChunk, sum := p.chunk(inner, c, own)
			for m := range rows {
				rows[m] = compute.WithRowsFrom(rows[m], StopGradient(ofChunk[m]), at)
			}
			if p.merge != nil {
				sums = p.merge(sums, sum)
			}
		}
		return append(rows, sums...)
	})
	rows, sums = results[:len(p.rows)], results[len(p.rows):]
	if turns*turn == e.Plan.Particles {
		return rows, sums
	}
	rest, restSums := e.unrolled(p, turns*turn, results[len(results)-1])
	for m := range rows {
		rows[m] = Concatenate([]*Node{rows[m], rest[m]}, 0)
	}
	if p.merge != nil {
		sums = p.merge(sums, restSums)
	}
	return rows, sums
}

// unrolled makes a pass over the particles from the given one on, in a chain of chunks behind the node `after`; nil:
// none.
func (e *evaluation) unrolled(p pass, from int, after *Node) (rows, sums []*Node) {
	parts := make([][]*Node, len(p.rows))
	var finished []*Node // what a chunk computes last, or a row of it: little to wait for
	for from < e.Plan.Particles {
		s := span{from: from, count: min(e.Plan.Chunk, e.Plan.Particles-from)}
		wait := after
		if before := e.Plan.Before(len(finished)); before >= 0 {
			wait = finished[before]
		}
		ofChunk, sum := p.chunk(e, e.chunk(s, wait), p.outer)
		for m := range parts {
			parts[m] = append(parts[m], ofChunk[m])
		}
		last := slices.Concat(sum, ofChunk)
		finished = append(finished, firstRow(last[len(last)-1]))
		if sums == nil {
			sums = sum
		} else if p.merge != nil {
			sums = p.merge(sums, sum)
		}
		from += s.count
	}
	for _, ofChunks := range parts {
		rows = append(rows, concatenate(ofChunks))
	}
	return rows, sums
}

// firstRow is the first row of a matrix; other nodes it leaves as they are.
func firstRow(x *Node) *Node {
	if x.Rank() < 2 {
		return x
	}
	return Slice(x, AxisRange(0, 1))
}

// rowsOf is the shape of what there is for each of so many particles.
func rowsOf(like *Node, particles int, dims []int) shapes.Shape {
	return shapes.Make(like.DType(), append([]int{particles}, dims...)...)
}

// outside lists all that a pass uses of the graph around a loop, and inside gives, for what stands for these within it,
// the evaluation and the pass's outer nodes there.
func (e *evaluation) outside(p pass) (outer []*Node, inside func(outer []*Node) (*evaluation, []*Node)) {
	names := slices.Sorted(maps.Keys(e.common))
	outer = append(outer, e.phi, e.input.Node, e.batch.Y)
	for _, name := range names {
		outer = append(outer, e.common[name].Node)
	}
	if e.batch.Count != nil {
		outer = append(outer, e.batch.Count)
	}
	own := len(outer)
	outer = append(outer, p.outer...)
	return outer, func(outer []*Node) (*evaluation, []*Node) {
		inner := *e
		inner.phi, inner.input.Node = outer[0], outer[1]
		inner.batch = Batch{Y: outer[2]}
		inner.common = nn.Params{}
		for i, name := range names {
			leaf := e.common[name]
			leaf.Node = outer[3+i]
			inner.common[name] = leaf
		}
		if e.batch.Count != nil {
			inner.batch.Count = outer[own-1]
		}
		return &inner, outer[own:]
	}
}

package compute

import (
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Pass is a computation over particles, [J, D], chunk by chunk (see Plan.Over).
type Pass struct {
	Outer []*graph.Node // further nodes for Chunk, such as [J] weights
	Rows  [][]int       // shape of each per-particle result, without the particle axis; the type is that of phi
	None  []*graph.Node // the sums over an empty set of particles, where Merge begins
	// Chunk computes a chunk's results per particle, rows [c, ...] of phi [c, D], and sums over its particles. It must use
	// no other nodes than its arguments, where outer is Outer, since it may be the body of a loop. If the plan has parts
	// (see Plan.For), it is called for each part, Span.Part: the results per particle are added up over the parts, and
	// the sums are merged.
	Chunk func(s Span, phi *graph.Node, outer []*graph.Node) (rows, sums []*graph.Node)
	Merge func(a, b []*graph.Node) []*graph.Node // merges the sums of two parts; nil if there are no sums
	// Captures says that Chunk uses nodes other than its arguments; the chunks are then unrolled, not a loop.
	Captures bool
}

// Span is the range of a chunk's particles.
type Span struct {
	Count int         // of particles
	Part  *graph.Node // the part of the rows, counted from 0, an int32 scalar; nil if they are not cut
	from  int         // the first
	at    *graph.Node // the first, an int32 scalar, in a loop over chunks; nil: from
}

// Of returns the particles' rows of x, [J, ...].
func (s Span) Of(x *graph.Node) *graph.Node {
	switch {
	case s.at != nil:
		return RowsFrom(x, s.at, s.Count)
	case s.Count == x.Shape().Dim(0):
		return x
	}
	return graph.Slice(x, graph.AxisRange(s.from, s.from+s.Count))
}

// fewChunks is the most chunks that are unrolled in the graph: then a chunk can begin on the processors that another
// leaves idle at its end, unlike in a loop. For many chunks the loop is faster, and compiles as fast as one chunk.
// BenchmarkGradient of package target measures both.
const fewChunks = 4

// Over makes a pass over all particles phi, [J, D]: rows are [J, ...]. Many chunks are a loop, if the backend can;
// otherwise they are unrolled. On an accelerator whose memory is known, chunks that the user has not set are larger, up
// to an eighth of what is free. It panics with an error if a chunk is known not to fit the device's memory.
func (p Plan) Over(phi *graph.Node, pass Pass) (rows, sums []*graph.Node) {
	p = p.For(phi).on(phi.Graph())
	p.checkMemory(phi.Graph())
	together := max(p.Concurrent, 1)
	turn := together * p.Chunk // particles of a turn of the loop
	turns := p.Particles / max(turn, 1)
	few := p.chunks()*p.Parts <= fewChunks || turns*p.Parts < 2
	if few || pass.Captures || p.Devices > 1 || !CanLoop(phi.Graph()) {
		return p.inFewChunks().unrolled(phi, pass, 0, nil)
	}

	var carried []*graph.Node
	for _, dims := range pass.Rows {
		shape := shapes.Make(phi.DType(), append([]int{turns * turn}, dims...)...)
		carried = append(carried, graph.Zeros(phi.Graph(), shape))
	}
	carried = append(carried, pass.None...)
	outer := append([]*graph.Node{phi}, pass.Outer...)
	results := Loop(turns*p.Parts, outer, carried, func(i *graph.Node, outer, carried []*graph.Node) []*graph.Node {
		rows, sums := slices.Clone(carried[:len(pass.Rows)]), carried[len(pass.Rows):]
		var part *graph.Node
		if p.Parts > 1 {
			number := i
			i = graph.Div(number, graph.Const(number.Graph(), int32(p.Parts)))
			part = graph.Sub(number, graph.MulScalar(i, float64(p.Parts)))
		}
		for k := range together {
			at := graph.AddScalar(graph.MulScalar(i, float64(turn)), float64(k*p.Chunk))
			s := Span{Count: p.Chunk, Part: part, at: at}
			ofChunk, sum := pass.Chunk(s, s.Of(outer[0]), outer[1:])
			for m := range rows {
				own := graph.StopGradient(ofChunk[m])
				if part != nil {
					own = graph.Add(own, s.Of(rows[m]))
				}
				rows[m] = WithRowsFrom(rows[m], own, at)
			}
			sums = pass.merged(sums, sum)
		}
		return append(rows, sums...)
	})
	rows, sums = results[:len(pass.Rows)], results[len(pass.Rows):]
	if turns*turn == p.Particles {
		return rows, sums
	}
	rest, restSums := p.unrolled(phi, pass, turns*turn, results[len(results)-1])
	for m := range rows {
		rows[m] = graph.Concatenate([]*graph.Node{rows[m], rest[m]}, 0)
	}
	return rows, pass.merged(sums, restSums)
}

// unrolled makes a pass over the particles from the given one on, in unrolled chunks, and parts of the rows, that are
// evaluated one after another, after the node `after` if it is not nil.
func (p Plan) unrolled(phi *graph.Node, pass Pass, from int, after *graph.Node) (rows, sums []*graph.Node) {
	ofChunks := make([][]*graph.Node, len(pass.Rows))
	var finished []*graph.Node // the last results of each evaluation, or one row of them, for the next to wait for
	for from < p.Particles {
		var ofChunk []*graph.Node
		s := Span{Count: min(p.Chunk, p.Particles-from), from: from}
		for part := range p.Parts {
			if p.Parts > 1 {
				s.Part = graph.Const(phi.Graph(), int32(part))
			}
			particles, wait := s.Of(phi), after
			if before := p.before(len(finished)); before >= 0 {
				wait = finished[before]
			}
			if wait != nil {
				particles = barrier(particles, wait)
			}
			ofPart, sum := pass.Chunk(s, particles, pass.Outer)
			last := slices.Concat(sum, ofPart)
			finished = append(finished, firstRow(last[len(last)-1]))
			if ofChunk == nil {
				ofChunk = slices.Clone(ofPart)
			} else {
				for m := range ofChunk {
					ofChunk[m] = graph.Add(ofChunk[m], ofPart[m])
				}
			}
			if sums == nil {
				sums = sum
			} else {
				sums = pass.merged(sums, sum)
			}
		}
		for m := range ofChunks {
			ofChunks[m] = append(ofChunks[m], ofChunk[m])
		}
		from += s.Count
	}
	for _, of := range ofChunks {
		if len(of) == 1 {
			rows = append(rows, of[0])
		} else {
			rows = append(rows, graph.Concatenate(of, 0))
		}
	}
	return rows, sums
}

// merged merges the sums of two parts.
func (p Pass) merged(a, b []*graph.Node) []*graph.Node {
	if p.Merge == nil {
		return nil
	}
	return p.Merge(a, b)
}

// firstRow is the first row of a matrix; other nodes stay the same.
func firstRow(x *graph.Node) *graph.Node {
	if x.Rank() < 2 {
		return x
	}
	return graph.Slice(x, graph.AxisRange(0, 1))
}

package pmcnet

import (
	"gobnn/bayes/compute"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// This file has the densities of all draws under all proposals with full covariances. On a CPU, pairs of a proposal and
// another's draws that do not count in the mixture are left out, which halves the time in 176 dimensions.

// logDensities computes |L^-1 (x - mu)|^2. Each row of L^-1 adds to this sum. In many dimensions a part of the rows
// therefore shows for most pairs of a proposal and another's draws that they do not count in the mixture, and the other
// rows are left out.
func (full) logDensities(c compute.Nodes, mean, x *Node) *Node {
	g, m, d := mean.Graph(), mean.Shape().Dim(0), mean.Shape().Dim(1)
	w := newWhitening(c, mean, x)
	all := Const(g, int32(m/w.side))
	if w.parts == 1 || !compute.CanLoop(g) || !compute.OnCPU(g.Backend()) {
		return gaussian(w.add(all, nil, 0, w.parts), c[logDetName], d)
	}
	own, far := w.own(), w.far(c[logDetName])
	squares := w.add(all, nil, 0, 1)
	few := ConstAs(all, int32(fewPairs*float64(m*m)))
	for part := 1; part < w.parts; part++ {
		_, near := w.near(squares, own, far)
		squares = w.add(Where(GreaterThan(near, few), all, ZerosLike(all)), squares, part, part+1)
	}
	return gaussian(w.finish(squares, own, far, few), c[logDetName], d)
}

// negligible is the distance from which a proposal is left out of the mixture at a draw: its log-density lies this far
// below the one of the draw's own proposal. Its part of the mixture is then at most e^-50, or 2e-22; float64 resolves
// 2e-16.
const negligible = 50

// fewPairs is the largest share of pairs, of a proposal and the draws of another, that are finished one by one.
// Products of several proposals take less time for each pair, so if more pairs count, all pairs get the next part of
// the rows.
const fewPairs = .2

// whitening holds what L^-1 (x - mu) needs for M proposals and all their draws.
type whitening struct {
	inverse *Node // L^-1, [M, D, D]
	// With c the mean of a proposal's K draws, L^-1 (x - mu) = L^-1 (x - c) + L^-1 (c - mu). The first term is one product
	// of the draws with the L^-1 of several proposals side by side; the second is the same for K draws. The differences
	// are taken before the multiplication, so that no digits are lost for proposals that are narrow compared with the
	// distance between them.
	draws *Node // x - c, [M K, D]
	shift *Node // L_m^-1 (c_p - mu_m), [M, M, D]
	side  int   // proposals side by side
	parts int   // of the rows of L^-1, each without the zeros above the diagonal
}

// cuts are the ends of the parts of the rows, in eighths of D. Proposals as wide as the posterior of a network need a
// quarter of the rows to be told apart, narrow ones that begin far apart three eighths; the products of smaller parts
// would be too thin to be fast.
var cuts = []int{2, 3, 4, 6, 8}

func newWhitening(c compute.Nodes, mean, x *Node) whitening {
	m, d, n := mean.Shape().Dim(0), mean.Shape().Dim(1), x.Shape().Dim(0)
	draws := Reshape(x, m, n/m, d)
	center := ReduceAndKeep(draws, ReduceMean, 1)               // [M, 1, D]
	apart := Sub(Reshape(center, 1, m, d), ExpandAxes(mean, 1)) // c_p - mu_m, [M, M, D]
	parts := 1
	if d >= 64 {
		parts = len(cuts)
	}
	return whitening{
		inverse: c[inverseName], draws: Reshape(Sub(draws, center), n, d),
		shift: Einsum("mbd,med->mbe", apart, c[inverseName]), side: sideBySide(m), parts: parts,
	}
}

// add returns the squares, [M, N] (nil: zeros), plus parts [from, to) of the rows for all pairs. A turn of the loop
// does w.side proposals; turns is M/side, or 0 to leave the squares as they are.
func (w whitening) add(turns, squares *Node, from, to int) *Node {
	m := w.inverse.Shape().Dim(0)
	first := squares == nil
	if first {
		squares = Zeros(w.inverse.Graph(), shapes.Make(w.inverse.DType(), m, w.draws.Shape().Dim(0)))
	}
	if !compute.CanLoop(w.inverse.Graph()) {
		all := make([]*Node, m/w.side)
		for i := range all {
			some := AxisRange(i*w.side, (i+1)*w.side)
			all[i] = Transpose(w.squares(Slice(w.inverse, some), Slice(w.shift, some), w.draws, from, to), 0, 1)
		}
		return Add(squares, Concatenate(all, 0))
	}
	outer := []*Node{turns, w.inverse, w.shift, w.draws}
	return compute.LoopWhile(lessThanFirst, outer, []*Node{squares}, func(turn *Node, outer, carried []*Node) []*Node {
		at := MulScalar(turn, float64(w.side))
		out := w.squares(compute.RowsFrom(outer[1], at, w.side), compute.RowsFrom(outer[2], at, w.side), outer[3], from, to)
		if out = Transpose(out, 0, 1); !first {
			out = Add(out, compute.RowsFrom(carried[0], at, w.side))
		}
		return []*Node{compute.WithRowsFrom(carried[0], out, at)}
	})[0]
}

// lessThanFirst says whether a loop of as many turns as the first outer node says goes on.
func lessThanFirst(turn *Node, outer, _ []*Node) *Node { return LessThan(turn, outer[0]) }

// own returns the squared distances of draws to the proposals that they were drawn from, [M, K].
func (w whitening) own() *Node {
	m, d := w.inverse.Shape().Dim(0), w.inverse.Shape().Dim(2)
	mine := BroadcastToDims(w.isOwn(), m, m, d)
	shift := ReduceSum(Where(mine, w.shift, ZerosLike(w.shift)), 1) // [M, D]
	z := Einsum("mkd,med->mke", Reshape(w.draws, m, w.draws.Shape().Dim(0)/m, d), w.inverse)
	return ReduceSum(Square(Add(z, ExpandAxes(shift, 1))), 2)
}

// isOwn says which of the M M pairs are a proposal and its own draws, bool [M, M, 1].
func (w whitening) isOwn() *Node {
	m := w.inverse.Shape().Dim(0)
	shape := shapes.Make(dtypes.Int32, m, m, 1)
	return Equal(Iota(w.inverse.Graph(), shape, 0), Iota(w.inverse.Graph(), shape, 1))
}

// far returns the excess of a draw's squared distance to another proposal, over the distance to its own, from which the
// pair does not count, [M, M, 1]. It takes the proposals' log-determinants, [M].
func (w whitening) far(logDet *Node) *Node {
	m := logDet.Shape().Dim(0)
	return ExpandAxes(AddScalar(Sub(Reshape(logDet, 1, m), Reshape(logDet, m, 1)), 2*negligible), 2)
}

// near says which pairs, of a proposal and another's draws, may count in the mixture at one of the draws: bool [M M],
// and their number. The squared distances, [M, N], may lack rows. NaN counts, so that it shows in the result.
func (w whitening) near(squares, own, far *Node) (which, count *Node) {
	m, k := own.Shape().Dim(0), own.Shape().Dim(1)
	beyond := GreaterThan(Reshape(squares, m, m, k), Add(Reshape(own, 1, m, k), far))
	which = LogicalNot(Or(Reshape(LogicalAll(beyond, 2), m*m), Reshape(w.isOwn(), m*m)))
	return which, ReduceAllSum(ConvertDType(which, dtypes.Int32))
}

// finish returns the squares, [M, N], with all rows added where they count: for draws' own proposals, and for the near
// pairs if they are few; if they are many, all rows have been added already.
func (w whitening) finish(squares, own, far, few *Node) *Node {
	m, k, d, g := own.Shape().Dim(0), own.Shape().Dim(1), w.inverse.Shape().Dim(2), own.Graph()
	near, count := w.near(squares, own, far)
	index := Iota(g, shapes.Make(dtypes.Int32, m*m), 0)
	list := Sort(Where(near, index, AddScalar(ZerosLike(index), float64(m*m))), 0, true)
	turns := Where(LessOrEqual(count, few), count, ZerosLike(count))

	outer := []*Node{turns, list, w.inverse, Reshape(w.draws, m, k, d), Reshape(w.shift, m*m, d)}
	carried := []*Node{Reshape(squares, m*m, k)}
	squares = compute.LoopWhile(lessThanFirst, outer, carried, func(turn *Node, outer, carried []*Node) []*Node {
		pair := Reshape(compute.RowsFrom(outer[1], turn, 1))
		proposal, drawn := Div(pair, ConstAs(pair, m)), Mod(pair, ConstAs(pair, m)) // drawn: the proposal of the draws
		inverse, x := compute.RowsFrom(outer[2], proposal, 1), compute.RowsFrom(outer[3], drawn, 1)
		z := Add(Einsum("kd,ed->ke", Squeeze(x, 0), Squeeze(inverse, 0)), compute.RowsFrom(outer[4], pair, 1))
		return []*Node{compute.WithRowsFrom(carried[0], Reshape(ReduceSum(Square(z), 1), 1, k), pair)}
	})[0]
	mine := BroadcastToDims(w.isOwn(), m, m, k)
	return Reshape(Where(mine, BroadcastToDims(ExpandAxes(own, 1), m, m, k), Reshape(squares, m, m, k)), m, m*k)
}

// sideBySide is the number of the p proposals that one turn of the loop evaluates: more make larger products, until
// their results no longer fit the cache.
func sideBySide(p int) int {
	for k := min(p, 10); ; k-- {
		if p%k == 0 {
			return k
		}
	}
}

// squares, [N, S], is |L_s^-1 x + shift_sb|^2 over parts [from, to) of the rows of L^-1, for each row of x, [N, D],
// which consists of B blocks of equally many rows, and for inverses, [S, D, D], and shifts, [S, B, D]. Each part is a
// product, which several processors share.
func (w whitening) squares(inverse, shift, x *Node, from, to int) *Node {
	s, d, n, blocks := inverse.Shape().Dim(0), inverse.Shape().Dim(1), x.Shape().Dim(0), shift.Shape().Dim(1)
	shift = ExpandAxes(Transpose(shift, 0, 1), 1) // [B, 1, S, D]
	var sum *Node
	for part := from; part < to; part++ {
		first, end := w.end(part, d), w.end(part+1, d)
		rows := Reshape(Slice(inverse, AxisRange(), AxisRange(first, end), AxisRange(0, end)), s*(end-first), end)
		z := Einsum("nd,qd->nq", Slice(x, AxisRange(), AxisRange(0, end)), rows)
		z = Add(Reshape(z, blocks, n/blocks, s, end-first),
			Slice(shift, AxisRange(), AxisRange(), AxisRange(), AxisRange(first, end)))
		if out := compute.RowSums(Reshape(Square(z), n*s, end-first)); sum == nil {
			sum = out
		} else {
			sum = Add(sum, out)
		}
	}
	return Reshape(sum, n, s)
}

// end returns the number of rows, of d, in the given number of first parts.
func (w whitening) end(parts, d int) int {
	if parts == 0 {
		return 0
	}
	return cuts[parts-1+len(cuts)-w.parts] * d / 8
}

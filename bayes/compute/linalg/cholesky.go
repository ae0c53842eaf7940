// Package linalg provides linear algebra for many small matrices at once, in a graph: the Cholesky factors of [M, D, D]
// matrices, the inverses of these factors and the log-determinants, none of which GoMLX has. Its functions build graph
// and panic as GoMLX does.
//
// A matrix is cut into halves recursively, down to diagonal blocks of at most 12 rows. All other work is products of
// matrices, batched over M. Diagonal blocks are factorised column by column, with the M matrices side by side as the
// innermost axis; on XLA the columns are a loop, so that the size of the graph does not grow with their number.
//
// A matrix that is not positive definite, or not finite, is flagged, and its factor is the identity: it affects no
// other matrix, and no NaN comes out.
package linalg

import (
	"gobnn/bayes/compute"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Factors are the Cholesky factors A_m = L_m L_m^T of M symmetric matrices.
type Factors struct {
	Lower   *graph.Node // L, [M, D, D], with zeros above the diagonal
	Inverse *graph.Node // L^-1, [M, D, D], with zeros above the diagonal
	LogDet  *graph.Node // log det A, [M]
	// Definite, bool [M], says which matrices are positive definite: finite, and with pivots above D times the rounding
	// error of their diagonal. The others have the factors of the identity.
	Definite *graph.Node
}

// largestBlock is the largest number of rows of a diagonal block: with twice as many, the columns cost more time than
// the products save (BenchmarkCholesky).
const largestBlock = 12

// Cholesky factorises a, [M, D, D], of float32 or float64. Only the part on and below the diagonal is read. It takes M
// D^3 multiplications, half of them for the inverses.
func Cholesky(a *graph.Node) Factors {
	m, d := a.Shape().Dim(0), a.Shape().Dim(1)
	dtype := a.DType()
	diagonal := diagonalOf(a)
	least := MulScalar(Abs(diagonal), float64(d)*compute.Epsilon(dtype)) // [M, D]
	lower, inverse, definite := factorise(a, least)

	keep := GreaterThan(definite, ZerosLike(definite)) // [M]
	all := BroadcastToDims(Reshape(keep, m, 1, 1), m, d, d)
	one := identity(a)
	f := Factors{Lower: Where(all, lower, one), Inverse: Where(all, inverse, one), Definite: keep}
	f.LogDet = MulScalar(ReduceSum(Log(diagonalOf(f.Lower)), 1), 2)
	return f
}

// diagonalOf is the diagonal, [M, D], of each of M matrices, [M, D, D].
func diagonalOf(a *graph.Node) *graph.Node {
	on := onDiagonal(a)
	return ReduceSum(Where(on, a, ZerosLike(a)), 2)
}

// factorise returns the lower factors and their inverses, [M, n, n] each, and definite, [M]: 1 for each matrix whose
// pivots are all above the least ones allowed, [M, n], else 0.
func factorise(a, least *Node) (lower, inverse, definite *Node) {
	n := a.Shape().Dim(1)
	if n <= largestBlock {
		return columns(a, least)
	}
	h := n / 2
	part := func(x *Node, rows, columns SliceAxisSpec) *Node { return Slice(x, AxisRange(), rows, columns) }
	first, second := AxisRange(0, h), AxisRange(h, n)
	// A = (A11 .; A21 A22): L11 from A11, L21 = A21 L11^-T, and L22 from A22 - L21 L21^T.
	l11, i11, ok1 := factorise(part(a, first, first), Slice(least, AxisRange(), first))
	l21 := Einsum("mij,mkj->mik", part(a, second, first), i11)
	rest := Sub(part(a, second, second), Einsum("mij,mkj->mik", l21, l21))
	l22, i22, ok2 := factorise(rest, Slice(least, AxisRange(), second))
	// L^-1 = (L11^-1 0; -L22^-1 L21 L11^-1 L22^-1).
	i21 := Neg(Einsum("mij,mjk->mik", i22, Einsum("mij,mjk->mik", l21, i11)))
	zero := Zeros(a.Graph(), shapes.Make(a.DType(), a.Shape().Dim(0), h, n-h))
	join := func(x11, x21, x22 *Node) *Node {
		return Concatenate([]*Node{Concatenate([]*Node{x11, zero}, 2), Concatenate([]*Node{x21, x22}, 2)}, 1)
	}
	return join(l11, l21, l22), join(i11, i21, i22), Mul(ok1, ok2)
}

// columns does the same as factorise, column by column: Gaussian elimination of (A | 1), which leaves L^-1 where the
// identity was.
func columns(a, least *Node) (lower, inverse, definite *Node) {
	m, n := a.Shape().Dim(0), a.Shape().Dim(1)
	g, dtype := a.Graph(), a.DType()
	// The upper triangle is replaced by the transposed lower one, and the matrices are put side by side: [n, n, M].
	below := GreaterOrEqual(Iota(g, shapes.Make(dtypes.Int32, m, n, n), 1), Iota(g, shapes.Make(dtypes.Int32, m, n, n), 2))
	a = TransposeAllAxes(Where(below, a, Transpose(a, 1, 2)), 1, 2, 0)
	least = Transpose(least, 0, 1) // [n, M]
	eye := TransposeAllAxes(identityOf(g, dtype, m, n), 1, 2, 0)
	carried := []*Node{a, ZerosLike(a), eye, Ones(g, shapes.Make(dtype, m))}

	if compute.CanLoop(g) {
		carried = compute.Loop(n, []*Node{least}, carried, func(j *Node, outer, carried []*Node) []*Node {
			return column(j, outer[0], carried, func(x *Node) *Node { return compute.RowsFrom(x, j, 1) })
		})
	} else {
		for j := range n {
			carried = column(Const(g, int32(j)), least, carried, func(x *Node) *Node { return Slice(x, AxisElem(j)) })
		}
	}
	return TransposeAllAxes(carried[1], 2, 1, 0), TransposeAllAxes(carried[2], 2, 0, 1), carried[3]
}

// column eliminates column j of the carried A, [n, n, M], and puts column j of L into row j of the transposed L; row
// returns row j of a tensor. A pivot that is too small counts as 1, and the column below it as 0.
func column(j, least *Node, carried []*Node, row func(x *Node) *Node) []*Node {
	a, lower, inverse, definite := carried[0], carried[1], carried[2], carried[3]
	n, m := a.Shape().Dim(0), a.Shape().Dim(2)
	g := a.Graph()
	place := Iota(g, shapes.Make(dtypes.Int32, n, m), 0) // the number of each row
	here, behind := Equal(place, j), GreaterThan(place, j)
	zero := Zeros(g, shapes.Make(a.DType(), n, m))

	values := Reshape(row(a), n, m) // row j is column j
	pivot := ReduceSum(Where(here, values, zero), 0)
	good := And(GreaterThan(pivot, Reshape(row(least), m)), IsFinite(pivot))
	root := Sqrt(Where(good, pivot, OnesLike(pivot)))
	over := func(x *Node) *Node { return BroadcastToDims(ExpandAxes(x, 0), n, m) }
	factor := Where(And(behind, over(good)), Div(values, over(root)), zero) // below the diagonal

	outer := func(x, y *Node) *Node { return Mul(ExpandAxes(x, 1), ExpandAxes(y, 0)) }
	solved := Div(Reshape(row(inverse), n, m), over(root)) // row j of L^-1
	atRow := BroadcastToDims(ExpandAxes(here, 1), n, n, m)
	set := func(x, row *Node) *Node { return Where(atRow, BroadcastToDims(ExpandAxes(row, 0), n, n, m), x) }
	return []*Node{
		Sub(a, outer(factor, factor)),
		set(lower, Where(here, over(root), factor)),
		set(Sub(inverse, outer(factor, solved)), solved),
		Mul(definite, ConvertDType(good, a.DType())),
	}
}

func identity(like *Node) *Node {
	return identityOf(like.Graph(), like.DType(), like.Shape().Dim(0), like.Shape().Dim(1))
}

func identityOf(g *Graph, dtype compute.DType, m, n int) *Node {
	shape := shapes.Make(dtypes.Int32, m, n, n)
	return ConvertDType(Equal(Iota(g, shape, 1), Iota(g, shape, 2)), dtype)
}

func onDiagonal(a *Node) *Node {
	shape := shapes.Make(dtypes.Int32, a.Shape().Dimensions...)
	return Equal(Iota(a.Graph(), shape, 1), Iota(a.Graph(), shape, 2))
}

package pmcnet

import (
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/linalg"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// lowRank keeps U, [M, D, R], and s^2, [M, D], of Sigma = U U^T + diag(s^2).
//
// An update approximates the matrix T = (1 - beta) Sigma + beta S of Algorithm 1 without writing it down. Divided by
// its standard deviations, T has the R leading eigenvectors Q, which some steps of the power method find (Halko,
// Martinsson and Tropp 2011, section 4.5), and U U^T = Q (Q^T T Q - v) Q^T, where v is the mean of the other
// eigenvalues, as in probabilistic principal components (Tipping and Bishop 1999). What is left of T's diagonal is s^2:
// the variances are T's.
type lowRank struct{ rank int }

// powerSteps leave an error of (next eigenvalue / last one kept)^powerSteps.
const powerSteps = 6

// leastShare is how much of each coordinate's variance s^2 keeps at least: so Sigma stays well conditioned.
const leastShare = 1e-3

func (f lowRank) initial(g *Graph, dtype compute.DType, m, d int, sigma float64) compute.Nodes {
	c := diagonal{}.initial(g, dtype, m, d, sigma)
	c[factorName] = Zeros(g, shapes.Make(dtype, m, d, f.rank))
	return c
}

func (f lowRank) normals(d int) int { return d + f.rank }

// spread is s z + U z' with R normals more.
func (f lowRank) spread(c compute.Nodes, z *Node) *Node {
	d := z.Shape().Dim(2) - f.rank
	own := diagonal{}.spread(c, Slice(z, AxisRange(), AxisRange(), AxisRange(0, d)))
	common := Slice(z, AxisRange(), AxisRange(), AxisRange(d, d+f.rank))
	return Add(own, Einsum("mkr,mdr->mkd", common, c[factorName]))
}

// logDensities are by Woodbury's identity: with V = diag(1/s) U and 1 + V^T V = C C^T, log det Sigma = 2 sum log s +
// 2 log det C, and the squared distance is |e|^2 - |C^-1 V^T e|^2, where e = (x - mu) / s.
func (f lowRank) logDensities(c compute.Nodes, mean, x *Node) *Node {
	m, d := mean.Shape().Dim(0), mean.Shape().Dim(1)
	groups, n := x.Shape().Dim(0), x.Shape().Dim(1)
	variance := wide(c[varianceName])
	v := Div(wide(c[factorName]), ExpandAxes(Sqrt(variance), 2))
	inner := linalg.Cholesky(Add(Einsum("mdr,mdq->mrq", v, v), unit(v, m, f.rank)))
	// w e = C^-1 V^T e as a function of x - mu.
	w := Div(Einsum("mdr,mqr->mdq", v, inner.Inverse), ExpandAxes(Sqrt(variance), 2))
	center := ReduceAndKeep(wide(mean), ReduceMean, 0)
	at := Einsum("gnd,pgdr->pgnr", Sub(wide(x), ExpandAxes(center, 0)), Reshape(w, m/groups, groups, d, f.rank))
	of := Einsum("md,mdr->mr", Sub(wide(mean), center), w)
	projected := Sub(Reshape(at, m, n, f.rank), ExpandAxes(of, 1))
	squares := Sub(distances(c[varianceName], mean, x), ReduceSum(Square(projected), 2))
	return gaussian(squares, Add(ReduceSum(Log(variance), 1), inner.LogDet), d)
}

func (f lowRank) times(c compute.Nodes, v *Node) *Node {
	return Squeeze(timesLowRank(c, ExpandAxes(v, 2)), 2)
}

// timesLowRank is Sigma x for x, [M, D, Q].
func timesLowRank(c compute.Nodes, x *Node) *Node {
	u := c[factorName]
	return Add(Mul(x, ExpandAxes(c[varianceName], 2)), Einsum("mdr,mrq->mdq", u, Einsum("mdr,mdq->mrq", u, x)))
}

func (f lowRank) update(c compute.Nodes, s scatter) (compute.Nodes, *Node) {
	old := c[varianceName]
	m, d := old.Shape().Dim(0), old.Shape().Dim(1)
	g, dtype := old.Graph(), old.DType()
	whole := Add(Mul(Add(old, ReduceSum(Square(c[factorName]), 2)), s.before), s.diagonal()) // T's diagonal
	definite := positive(whole)
	sd := Sqrt(Where(BroadcastToDims(ExpandAxes(definite, 1), m, d), whole, OnesLike(whole)))
	matrix := func(x *Node) *Node { // T x, of the T with ones on its diagonal
		x = Div(ConvertDType(x, dtype), ExpandAxes(sd, 2))
		return wide(Div(Add(Mul(timesLowRank(c, x), s.before), s.times(x)), ExpandAxes(sd, 2)))
	}
	// Directions that favour none: cosines of unlike frequencies.
	shape := shapes.Make(compute.Float64, m, d, f.rank)
	frequency := AddScalar(MulScalar(Iota(g, shape, 2), 0.7548776662466927), 0.5698402909980532)
	q := orthonormal(Cos(Mul(AddScalar(Iota(g, shape, 1), 1), frequency)))
	for range powerSteps {
		q = orthonormal(matrix(q))
	}
	h := Einsum("mdr,mdq->mrq", q, matrix(q))
	others := MulScalar(AddScalar(Neg(ReduceSum(linalg.DiagonalOf(h), 1)), float64(d)), 1/float64(max(d-f.rank, 1)))
	others = MaxScalar(MulScalar(others, 1-leastShare), leastShare) // less a little, so that H less it is definite
	inner := linalg.Cholesky(Sub(h, Mul(unit(h, m, f.rank), Reshape(others, m, 1, 1))))
	u := Einsum("mdr,mrq->mdq", q, inner.Lower)
	rest := MaxScalar(OneMinus(ReduceSum(Square(u), 2)), leastShare)
	next := compute.Nodes{
		varianceName: Mul(ConvertDType(rest, dtype), Square(sd)),
		factorName:   Mul(ConvertDType(u, dtype), ExpandAxes(sd, 2)),
	}
	finite := LogicalAll(IsFinite(Reshape(next[factorName], m, d*f.rank)), 1)
	return next, And(And(inner.Definite, finite), definite)
}

// orthonormal has columns that span those of x, [M, D, R], float64.
func orthonormal(x *Node) *Node {
	x = Div(x, Sqrt(AddScalar(ReduceAndKeep(Square(x), ReduceSum, 1), 1e-300)))
	return Einsum("mdr,mqr->mdq", x, linalg.Cholesky(Einsum("mdr,mdq->mrq", x, x)).Inverse)
}

// unit is the identity, [M, R, R].
func unit(like *Node, m, r int) *Node {
	shape := shapes.Make(dtypes.Int32, m, r, r)
	return ConvertDType(Equal(Iota(like.Graph(), shape, 1), Iota(like.Graph(), shape, 2)), like.DType())
}

package pmcnet

import (
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/linalg"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// family is a kind of covariance: how M of them are kept, by names in the state, and what is done with them.
type family interface {
	// initial are sigma^2 1, M times.
	initial(g *Graph, dtype compute.DType, m, d int, sigma float64) compute.Nodes
	// normals is how many standard normals a draw of D coordinates takes.
	normals(d int) int
	// spread takes standard normals z, [M, K, normals], to draws of N(0, Sigma_m), [M, K, D].
	spread(c compute.Nodes, z *Node) *Node
	// logDensities are log N(x; mu_m, Sigma_m) for proposal m at the draws of group m mod G, float64 [M, N]: x is
	// [G, N, D], the K draws of each of the M/G proposals of a group after one another, mean [M, D].
	logDensities(c compute.Nodes, mean, x *Node) *Node
	// times is Sigma_m v_m, [M, D].
	times(c compute.Nodes, v *Node) *Node
	// update is step d of Algorithm 1: the next covariances, and which are positive definite, bool [M]. What stands for
	// the others means nothing.
	update(c compute.Nodes, s scatter) (next compute.Nodes, definite *Node)
}

// family is that of the settings.
func (a PMC) family() family {
	switch a.Covariance {
	case DiagonalCovariance:
		return diagonal{}
	case LowRankCovariance:
		return lowRank{rank: a.Rank}
	case FixedCovariance:
		return diagonal{fixed: true}
	}
	return full{}
}

// names are the entries of the state that a family has.
func (a PMC) names() []string {
	switch a.Covariance {
	case FullCovariance:
		return []string{covarianceName, lowerName, inverseName, logDetName}
	case LowRankCovariance:
		return []string{varianceName, factorName}
	}
	return []string{varianceName}
}

const (
	covarianceName = "covariance" // Sigma, [M, D, D]
	lowerName      = "lower"      // L of Sigma = L L^T, [M, D, D]
	inverseName    = "inverse"    // L^-1, [M, D, D]
	logDetName     = "log_det"    // log det Sigma, [M]
	varianceName   = "variance"   // of diagonal ones the diagonal, [M, D]; of low rank ones s^2
	factorName     = "factor"     // U of U U^T + diag(s^2), [M, D, R]
)

// scatter is the covariance that an iteration's draws give each proposal, beta ((1 - eta) S^ + eta S~), and the weight
// of the one before, 1 - beta. S^ and S~ are about their own means, as the draws' weights and the clipped ones give
// them.
type scatter struct {
	before *Node // 1 - beta, a scalar
	// Rows x_k, [M, K, D], weights of their products, [M, K], and a vector v, [M, D], such that the covariance is
	// sum_k weights_k x_k x_k^T - v v^T. Rows are less the mean of S^, so v is small.
	rows, weights, less *Node
	shrinkage           float64
}

// newScatter is that of theta, [M, K, D], with weights w and clipped ones, [M, K], normalised.
func newScatter(theta, w, clipped, beta, eta *Node, shrinkage float64) scatter {
	mean := func(x, w *Node) *Node { return Einsum("mkd,mk->md", x, w) }
	rows := Sub(theta, ExpandAxes(mean(theta, w), 1))
	ofHat, ofTilde := Mul(beta, OneMinus(eta)), Mul(beta, eta)
	return scatter{
		before: OneMinus(beta), rows: rows, weights: Add(Mul(w, ofHat), Mul(clipped, ofTilde)),
		less: Mul(mean(rows, clipped), Sqrt(ofTilde)), shrinkage: shrinkage,
	}
}

// diagonal is the covariance's, [M, D].
func (s scatter) diagonal() *Node {
	return Sub(Einsum("mkd,mk->md", Square(s.rows), s.weights), Square(s.less))
}

// matrix is the covariance, [M, D, D], with its off-diagonal part shrunk.
func (s scatter) matrix() *Node {
	weighted := Mul(s.rows, ExpandAxes(Sqrt(s.weights), 2))
	out := Einsum("mkd,mke->mde", weighted, weighted)
	out = Sub(out, Mul(ExpandAxes(s.less, 2), ExpandAxes(s.less, 1)))
	if s.shrinkage == 0 {
		return out
	}
	shape := shapes.Make(dtypes.Int32, out.Shape().Dimensions...)
	on := Equal(Iota(out.Graph(), shape, 1), Iota(out.Graph(), shape, 2))
	return Where(on, out, MulScalar(out, 1-s.shrinkage))
}

// times is the covariance, not shrunk, times x, [M, D, R].
func (s scatter) times(x *Node) *Node {
	products := Einsum("mkd,mdr->mkr", s.rows, x)
	out := Einsum("mkd,mkr->mdr", s.rows, Mul(products, ExpandAxes(s.weights, 2)))
	less := Einsum("md,mdr->mr", s.less, x)
	return Sub(out, Mul(ExpandAxes(s.less, 2), ExpandAxes(less, 1)))
}

// full keeps Sigma with its Cholesky factor.
type full struct{}

func (full) initial(g *Graph, dtype compute.DType, m, d int, sigma float64) compute.Nodes {
	one := unit(Zeros(g, shapes.Make(dtype)), m, d)
	return compute.Nodes{
		covarianceName: MulScalar(one, sigma*sigma), lowerName: MulScalar(one, sigma), inverseName: DivScalar(one, sigma),
		logDetName: AddScalar(Zeros(g, shapes.Make(dtype, m)), 2*float64(d)*math.Log(sigma)),
	}
}

func (full) normals(d int) int { return d }

func (full) spread(c compute.Nodes, z *Node) *Node { return Einsum("mde,mke->mkd", c[lowerName], z) }

// logDensities goes over the proposals, some at a time. With c the mean of a proposal's K draws, L^-1 (x - mu) is L^-1
// (x - c) + L^-1 (c - mu): the first is one product of the draws with the L^-1 of several proposals side by side, and
// the second is the same for K draws. Both differences are taken before they are multiplied, so that proposals that are
// narrow beside what lies between them lose no digits.
func (full) logDensities(c compute.Nodes, mean, x *Node) *Node {
	g := mean.Graph()
	m, d := mean.Shape().Dim(0), mean.Shape().Dim(1)
	groups, n := x.Shape().Dim(0), x.Shape().Dim(1)
	p := m / groups
	k := n / p
	draws := Reshape(x, groups, p, k, d)
	center := ReduceAndKeep(draws, ReduceMean, 2)                                         // [G, P, 1, D]
	inverse := Reshape(Transpose(Reshape(c[inverseName], p, groups, d*d), 0, 1), m, d, d) // by groups
	apart := Sub(Reshape(center, groups, 1, p, d), Reshape(Transpose(Reshape(mean, p, groups, d), 0, 1), groups, p, 1, d))
	shift := Einsum("mbd,med->mbe", Reshape(apart, m, p, d), inverse)
	draws = Reshape(Sub(draws, center), groups, n, d)

	side := sideBySide(p)
	squares := Zeros(g, shapes.Make(mean.DType(), m/side, n, side))
	if compute.CanLoop(g) {
		outer := []*Node{inverse, shift, draws}
		squares = compute.Loop(m/side, outer, []*Node{squares}, func(turn *Node, outer, carried []*Node) []*Node {
			first := MulScalar(turn, float64(side))
			x := Squeeze(compute.RowsFrom(outer[2], Div(first, ConstAs(first, p)), 1), 0)
			out := whiten(compute.RowsFrom(outer[0], first, side), compute.RowsFrom(outer[1], first, side), x)
			return []*Node{compute.WithRowsFrom(carried[0], ExpandAxes(out, 0), turn)}
		})[0]
	} else {
		turns := make([]*Node, m/side)
		for i := range turns {
			some := AxisRange(i*side, (i+1)*side)
			turns[i] = whiten(Slice(inverse, some), Slice(shift, some), Squeeze(Slice(draws, AxisElem(i*side/p)), 0))
		}
		squares = Stack(turns, 0)
	}
	squares = Reshape(Transpose(squares, 1, 2), groups, p, n)
	return gaussian(Reshape(Transpose(squares, 0, 1), m, n), c[logDetName], d)
}

// sideBySide is how many of p proposals a turn of the loop evaluates: more make larger products, until what these give
// no longer fits the cache.
func sideBySide(p int) int {
	for k := min(p, 10); ; k-- {
		if p%k == 0 {
			return k
		}
	}
}

// whiten is |L_s^-1 x + shift_sb|^2 for each row of x, [N, D], of which B blocks of as many rows follow each other: [N,
// S], of inverses, [S, D, D], and shifts, [S, B, D]. What of L^-1 is above the diagonal is left out by quarters: four
// products, which several processors share.
func whiten(inverse, shift, x *Node) *Node {
	s, d, n, blocks := inverse.Shape().Dim(0), inverse.Shape().Dim(1), x.Shape().Dim(0), shift.Shape().Dim(1)
	shift = ExpandAxes(Transpose(shift, 0, 1), 1) // [B, 1, S, D]
	parts := 4
	if d < 16*parts {
		parts = 1
	}
	var sum *Node
	for p := range parts {
		from, to := p*d/parts, (p+1)*d/parts
		rows := Reshape(Slice(inverse, AxisRange(), AxisRange(from, to), AxisRange(0, to)), s*(to-from), to)
		z := Einsum("nd,qd->nq", Slice(x, AxisRange(), AxisRange(0, to)), rows)
		z = Add(Reshape(z, blocks, n/blocks, s, to-from),
			Slice(shift, AxisRange(), AxisRange(), AxisRange(), AxisRange(from, to)))
		if part := compute.RowSums(Reshape(Square(z), n*s, to-from)); sum == nil {
			sum = part
		} else {
			sum = Add(sum, part)
		}
	}
	return Reshape(sum, n, s)
}

// gaussian is the log-density of squared distances, [M, N], given log-determinants, [M]: float64.
func gaussian(squares, logDet *Node, d int) *Node {
	logDet = ExpandAxes(ConvertDType(logDet, compute.Float64), 1)
	sum := Add(ConvertDType(squares, compute.Float64), logDet)
	return MulScalar(AddScalar(sum, float64(d)*math.Log(2*math.Pi)), -.5)
}

func (full) times(c compute.Nodes, v *Node) *Node { return Einsum("mde,me->md", c[covarianceName], v) }

func (full) update(c compute.Nodes, s scatter) (compute.Nodes, *Node) {
	covariance := Add(Mul(c[covarianceName], s.before), s.matrix())
	f := linalg.Cholesky(covariance)
	return compute.Nodes{
		covarianceName: covariance, lowerName: f.Lower, inverseName: f.Inverse, logDetName: f.LogDet,
	}, f.Definite
}

// diagonal keeps variances.
type diagonal struct{ fixed bool }

func (diagonal) initial(g *Graph, dtype compute.DType, m, d int, sigma float64) compute.Nodes {
	return compute.Nodes{varianceName: AddScalar(Zeros(g, shapes.Make(dtype, m, d)), sigma*sigma)}
}

func (diagonal) normals(d int) int { return d }

func (diagonal) spread(c compute.Nodes, z *Node) *Node {
	return Mul(z, ExpandAxes(Sqrt(c[varianceName]), 1))
}

func (diagonal) logDensities(c compute.Nodes, mean, x *Node) *Node {
	squares := distances(c[varianceName], mean, x)
	return gaussian(squares, ReduceSum(Log(ConvertDType(c[varianceName], compute.Float64)), 1), mean.Shape().Dim(1))
}

// distances are sum_d (x_d - mu_d)^2 / s_d^2 of proposal m at the draws of group m mod G, [M, N], in float64: by
// products, sum x^2/s^2 - 2 sum x mu/s^2 + sum mu^2/s^2, whose terms are large beside what is left of them.
func distances(variance, mean, x *Node) *Node {
	m, d := mean.Shape().Dim(0), mean.Shape().Dim(1)
	groups := x.Shape().Dim(0)
	byGroup := func(v *Node) *Node { // [M, D] to [P, G, D]
		return Reshape(v, m/groups, groups, d)
	}
	variance, mean, x = wide(variance), wide(mean), wide(x)
	center := ReduceAndKeep(mean, ReduceMean, 0) // [1, D]: terms are smaller without it
	mean, x = Sub(mean, center), Sub(x, ExpandAxes(center, 0))
	precision := Reciprocal(variance)
	scaled := Mul(mean, precision)
	product := func(x, v *Node) *Node {
		if groups == 1 { // one plain product
			return Einsum("nd,pd->pn", Squeeze(x, 0), v)
		}
		return Einsum("gnd,pgd->pgn", x, byGroup(v))
	}
	out := Sub(product(Square(x), precision), MulScalar(product(x, scaled), 2))
	out = Reshape(out, m, x.Shape().Dim(1))
	return Add(out, ExpandAxes(ReduceSum(Mul(scaled, mean), 1), 1))
}

func wide(x *Node) *Node { return ConvertDType(x, compute.Float64) }

func (diagonal) times(c compute.Nodes, v *Node) *Node { return Mul(c[varianceName], v) }

func (f diagonal) update(c compute.Nodes, s scatter) (compute.Nodes, *Node) {
	old := c[varianceName]
	if f.fixed {
		return c, positive(old)
	}
	next := Add(Mul(old, s.before), s.diagonal())
	return compute.Nodes{varianceName: next}, positive(next)
}

// positive says which rows of variances, [M, D], are above 0 and finite.
func positive(variance *Node) *Node {
	return LogicalAll(And(GreaterThan(variance, ZerosLike(variance)), IsFinite(variance)), 1)
}

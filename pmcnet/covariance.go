package pmcnet

import (
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/linalg"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// family is a kind of covariance matrix: how M of them are stored, as named entries of the state, and what is computed
// with them.
type family interface {
	// initial is sigma^2 times the identity, for M proposals.
	initial(g *Graph, dtype compute.DType, m, d int, sigma float64) compute.Nodes
	// normals is the number of standard normals that a draw of D coordinates takes.
	normals(d int) int
	// spread turns standard normals z, [M, K, normals], into draws of N(0, Sigma_m), [M, K, D].
	spread(c compute.Nodes, z *Node) *Node
	// logDensities are log N(x; mu_m, Sigma_m), float64 [M, N], of each proposal m at the draws of its group m mod G: x,
	// [G, N, D], has the K draws of each of the M/G proposals of a group one after another, and mean is [M, D].
	logDensities(c compute.Nodes, mean, x *Node) *Node
	// times is Sigma_m v_m, [M, D].
	times(c compute.Nodes, v *Node) *Node
	// update is step d of Algorithm 1: the next covariances, and which of them are positive definite, bool [M]. The values
	// of the others have no meaning.
	update(c compute.Nodes, s scatter) (next compute.Nodes, definite *Node)
}

// family is the family that the settings choose.
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

// names are the names of the family's entries in the state.
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
	varianceName   = "variance"   // [M, D]: the diagonal of a diagonal covariance, s^2 of a low-rank one
	factorName     = "factor"     // U of a low-rank covariance U U^T + diag(s^2), [M, D, R]
)

// scatter is the contribution of an iteration's draws to each proposal's covariance, beta ((1 - eta) S^ + eta S~), with
// the weight of the previous covariance, 1 - beta. S^ is the covariance by the draws' weights and S~ that by the
// clipped weights, each about its own mean.
type scatter struct {
	before *Node // 1 - beta, a scalar
	// The covariance is sum_k weights_k x_k x_k^T - v v^T, with rows x_k, [M, K, D], weights, [M, K], and a vector v =
	// less, [M, D]. The mean of S^ is subtracted from the rows, so v is small.
	rows, weights, less *Node
	shrinkage           float64
}

// newScatter is the scatter of draws theta, [M, K, D], with normalised weights w and clipped weights, [M, K] each.
func newScatter(theta, w, clipped, beta, eta *Node, shrinkage float64) scatter {
	mean := func(x, w *Node) *Node { return Einsum("mkd,mk->md", x, w) }
	rows := Sub(theta, ExpandAxes(mean(theta, w), 1))
	ofHat, ofTilde := Mul(beta, OneMinus(eta)), Mul(beta, eta)
	return scatter{
		before: OneMinus(beta), rows: rows, weights: Add(Mul(w, ofHat), Mul(clipped, ofTilde)),
		less: Mul(mean(rows, clipped), Sqrt(ofTilde)), shrinkage: shrinkage,
	}
}

// diagonal is the diagonal of the covariance, [M, D].
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

// times is the covariance, without shrinkage, times x, [M, D, R].
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

// logDensities computes |L^-1 (x - mu)|^2. Each row of L^-1 adds to this sum. In many dimensions a part of the rows
// therefore shows for most pairs of a proposal and another's draws that they do not count in the mixture, and the other
// rows are left out.
func (full) logDensities(c compute.Nodes, mean, x *Node) *Node {
	m, d := mean.Shape().Dim(0), mean.Shape().Dim(1)
	groups, n := x.Shape().Dim(0), x.Shape().Dim(1)
	p := m / groups
	w := newWhitening(c, mean, x)
	all := Const(mean.Graph(), int32(m/w.side))
	var squares *Node
	if g := mean.Graph(); w.parts == 1 || !compute.CanLoop(g) || !compute.OnCPU(g.Backend()) {
		squares = w.add(all, nil, 0, w.parts)
	} else {
		own, far := w.own(), w.far(Reshape(Transpose(Reshape(c[logDetName], p, groups), 0, 1), m))
		squares = w.add(all, nil, 0, 1)
		few := ConstAs(all, int32(fewPairs*float64(m*p)))
		for part := 1; part < w.parts; part++ {
			_, near := w.near(squares, own, far)
			squares = w.add(Where(GreaterThan(near, few), all, ZerosLike(all)), squares, part, part+1)
		}
		squares = w.finish(squares, own, far, few)
	}
	squares = Reshape(Transpose(Reshape(squares, groups, p, n), 0, 1), m, n)
	return gaussian(squares, c[logDetName], d)
}

// negligible is by how much the log-density of a draw under another proposal must lie below that under its own, the one
// that it was drawn from, to be left out. It is then at most e^-50 of the mixture, or 2e-22; float64 resolves 2e-16.
const negligible = 50

// fewPairs is the largest share of pairs, of a proposal and the draws of another, that are finished one by one.
// Products of several proposals take less time for each pair, so if more pairs count, all pairs get the next part of
// the rows.
const fewPairs = .2

// whitening holds what L^-1 (x - mu) needs for M proposals and the draws of their groups. Everything is sorted by
// group: proposals 0 to P-1 are those of group 0.
type whitening struct {
	inverse *Node // L^-1, [M, D, D]
	// With c the mean of a proposal's K draws, L^-1 (x - mu) = L^-1 (x - c) + L^-1 (c - mu). The first term is one product
	// of the draws with the L^-1 of several proposals side by side; the second is the same for K draws. The differences
	// are taken before the multiplication, so that no digits are lost for proposals that are narrow compared with the
	// distance between them.
	draws *Node // x - c, [G, P K, D]
	shift *Node // L_m^-1 (c_p - mu_m), [M, P, D]
	side  int   // proposals side by side
	parts int   // of the rows of L^-1, each without the zeros above the diagonal
}

// cuts are the ends of the parts of the rows, in eighths of D. Proposals as wide as the posterior of a network need a
// quarter of the rows to be told apart, narrow ones that begin far apart three eighths; the products of smaller parts
// would be too thin to be fast.
var cuts = []int{2, 3, 4, 6, 8}

func newWhitening(c compute.Nodes, mean, x *Node) whitening {
	m, d := mean.Shape().Dim(0), mean.Shape().Dim(1)
	groups, n := x.Shape().Dim(0), x.Shape().Dim(1)
	p := m / groups
	draws := Reshape(x, groups, p, n/p, d)
	center := ReduceAndKeep(draws, ReduceMean, 2)                                         // [G, P, 1, D]
	inverse := Reshape(Transpose(Reshape(c[inverseName], p, groups, d*d), 0, 1), m, d, d) // by groups
	apart := Sub(Reshape(center, groups, 1, p, d), Reshape(Transpose(Reshape(mean, p, groups, d), 0, 1), groups, p, 1, d))
	parts := 1
	if d >= 64 {
		parts = len(cuts)
	}
	return whitening{
		inverse: inverse, draws: Reshape(Sub(draws, center), groups, n, d),
		shift: Einsum("mbd,med->mbe", Reshape(apart, m, p, d), inverse), side: sideBySide(p), parts: parts,
	}
}

// add returns the squares, [M, N] (nil: zeros), plus parts [from, to) of the rows for all pairs. A turn of the loop
// does w.side proposals; turns is M/side, or 0 to leave the squares as they are.
func (w whitening) add(turns, squares *Node, from, to int) *Node {
	m, p := w.inverse.Shape().Dim(0), w.shift.Shape().Dim(1)
	first := squares == nil
	if first {
		squares = Zeros(w.inverse.Graph(), shapes.Make(w.inverse.DType(), m, w.draws.Shape().Dim(1)))
	}
	if !compute.CanLoop(w.inverse.Graph()) {
		all := make([]*Node, m/w.side)
		for i := range all {
			some := AxisRange(i*w.side, (i+1)*w.side)
			x := Squeeze(Slice(w.draws, AxisElem(i*w.side/p)), 0)
			all[i] = Transpose(w.squares(Slice(w.inverse, some), Slice(w.shift, some), x, from, to), 0, 1)
		}
		return Add(squares, Concatenate(all, 0))
	}
	outer := []*Node{w.inverse, w.shift, w.draws}
	return compute.LoopUpTo(turns, outer, []*Node{squares}, func(turn *Node, outer, carried []*Node) []*Node {
		at := MulScalar(turn, float64(w.side))
		x := Squeeze(compute.RowsFrom(outer[2], Div(at, ConstAs(at, p)), 1), 0)
		out := w.squares(compute.RowsFrom(outer[0], at, w.side), compute.RowsFrom(outer[1], at, w.side), x, from, to)
		if out = Transpose(out, 0, 1); !first {
			out = Add(out, compute.RowsFrom(carried[0], at, w.side))
		}
		return []*Node{compute.WithRowsFrom(carried[0], out, at)}
	})[0]
}

// own are the squared distances of draws to the proposals that they were drawn from, [M, K].
func (w whitening) own() *Node {
	m, p, d := w.inverse.Shape().Dim(0), w.shift.Shape().Dim(1), w.inverse.Shape().Dim(2)
	mine := BroadcastToDims(w.isOwn(), m, p, d)
	shift := ReduceSum(Where(mine, w.shift, ZerosLike(w.shift)), 1) // [M, D]
	z := Einsum("mkd,med->mke", Reshape(w.draws, m, w.draws.Shape().Dim(1)/p, d), w.inverse)
	return ReduceSum(Square(Add(z, ExpandAxes(shift, 1))), 2)
}

// isOwn says which of the M P pairs are a proposal and its own draws, bool [M, P, 1].
func (w whitening) isOwn() *Node {
	p := w.shift.Shape().Dim(1)
	shape := shapes.Make(dtypes.Int32, w.inverse.Shape().Dim(0), p, 1)
	row := Iota(w.inverse.Graph(), shape, 0)
	return Equal(Mod(row, ConstAs(row, p)), Iota(w.inverse.Graph(), shape, 1))
}

// far, [G, P, P, 1], is by how much a draw's squared distance to another proposal of its group must exceed that to its
// own proposal for the pair not to count, given log-determinants, [M].
func (w whitening) far(logDet *Node) *Node {
	p := w.shift.Shape().Dim(1)
	groups := logDet.Shape().Dim(0) / p
	apart := Sub(Reshape(logDet, groups, 1, p), Reshape(logDet, groups, p, 1))
	return ExpandAxes(AddScalar(apart, 2*negligible), 3)
}

// near says which pairs of a proposal and another's draws may count in the mixture at one of the draws, bool [M P], and
// how many they are. The squared distances, [M, N], may lack rows. NaN counts, so that it shows in the result.
func (w whitening) near(squares, own, far *Node) (which, count *Node) {
	m, p := w.inverse.Shape().Dim(0), w.shift.Shape().Dim(1)
	groups, k := m/p, own.Shape().Dim(1)
	pairs := Reshape(squares, groups, p, p, k)
	beyond := GreaterThan(pairs, Add(Reshape(own, groups, 1, p, k), far))
	which = LogicalNot(Or(Reshape(LogicalAll(beyond, 3), m*p), Reshape(w.isOwn(), m*p)))
	return which, ReduceAllSum(ConvertDType(which, dtypes.Int32))
}

// finish returns the squares, [M, N], with all rows added where they count: for draws' own proposals, and for the near
// pairs if they are few; if they are many, all rows have been added already.
func (w whitening) finish(squares, own, far, few *Node) *Node {
	m, p, d := w.inverse.Shape().Dim(0), w.shift.Shape().Dim(1), w.inverse.Shape().Dim(2)
	k, g := own.Shape().Dim(1), own.Graph()
	near, count := w.near(squares, own, far)
	index := Iota(g, shapes.Make(dtypes.Int32, m*p), 0)
	list := Sort(Where(near, index, AddScalar(ZerosLike(index), float64(m*p))), 0, true)
	turns := Where(LessOrEqual(count, few), count, ZerosLike(count))

	outer := []*Node{list, w.inverse, Reshape(w.draws, m, k, d), Reshape(w.shift, m*p, d)}
	carried := []*Node{Reshape(squares, m*p, k)}
	squares = compute.LoopUpTo(turns, outer, carried, func(turn *Node, outer, carried []*Node) []*Node {
		pair := Reshape(compute.RowsFrom(outer[0], turn, 1))
		size := ConstAs(pair, p)
		proposal := Div(pair, size)
		drawn := Add(Mul(Div(proposal, size), size), Mod(pair, size)) // the proposal that made the draws, in the same group
		inverse, x := compute.RowsFrom(outer[1], proposal, 1), compute.RowsFrom(outer[2], drawn, 1)
		z := Add(Einsum("kd,ed->ke", Squeeze(x, 0), Squeeze(inverse, 0)), compute.RowsFrom(outer[3], pair, 1))
		return []*Node{compute.WithRowsFrom(carried[0], Reshape(ReduceSum(Square(z), 1), 1, k), pair)}
	})[0]
	mine := BroadcastToDims(w.isOwn(), m, p, k)
	return Reshape(Where(mine, BroadcastToDims(ExpandAxes(own, 1), m, p, k), Reshape(squares, m, p, k)), m, p*k)
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

// end is the number of rows, of D, in the first so many parts.
func (w whitening) end(parts, d int) int {
	if parts == 0 {
		return 0
	}
	return cuts[parts-1+len(cuts)-w.parts] * d / 8
}

// gaussian is the log-density, float64, given squared distances, [M, N], and log-determinants, [M].
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

// distances are sum_d (x_d - mu_d)^2 / s_d^2 of proposal m at the draws of group m mod G, [M, N]. They are computed by
// products as sum x^2/s^2 - 2 sum x mu/s^2 + sum mu^2/s^2, whose terms are large compared with their sum, hence in
// float64.
func distances(variance, mean, x *Node) *Node {
	m, d := mean.Shape().Dim(0), mean.Shape().Dim(1)
	groups := x.Shape().Dim(0)
	byGroup := func(v *Node) *Node { // [M, D] to [P, G, D]
		return Reshape(v, m/groups, groups, d)
	}
	variance, mean, x = wide(variance), wide(mean), wide(x)
	center := ReduceAndKeep(mean, ReduceMean, 0) // [1, D], subtracted to make the terms smaller
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

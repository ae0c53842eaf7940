package pmcnet

import (
	"math"
	"runtime"

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
	// [G, N, D], mean [M, D].
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

// logDensities goes over the proposals, M products of [N, D] and [D, D], of which the part above the diagonal is left
// out by quarters.
func (full) logDensities(c compute.Nodes, mean, x *Node) *Node {
	g := mean.Graph()
	m, d := mean.Shape().Dim(0), mean.Shape().Dim(1)
	groups, n := x.Shape().Dim(0), x.Shape().Dim(1)
	squares := Zeros(g, shapes.Make(mean.DType(), m, n))
	if compute.CanLoop(g) {
		side := sideBySide(m)
		outer := []*Node{c[inverseName], mean, x}
		squares = compute.Loop(m/side, outer, []*Node{squares}, func(turn *Node, outer, carried []*Node) []*Node {
			at := func(x, i *Node) *Node { return Squeeze(compute.RowsFrom(x, i, 1), 0) }
			rows := make([]*Node, side)
			first := MulScalar(turn, float64(side))
			for k := range rows {
				i := AddScalar(first, float64(k))
				rows[k] = whiten(at(outer[0], i), at(outer[1], i), at(outer[2], Mod(i, ConstAs(i, groups))))
			}
			return []*Node{compute.WithRowsFrom(carried[0], Stack(rows, 0), first)}
		})[0]
	} else {
		rows := make([]*Node, m)
		at := func(x *Node, i int) *Node { return Squeeze(Slice(x, AxisElem(i)), 0) }
		for i := range rows {
			rows[i] = whiten(at(c[inverseName], i), at(mean, i), at(x, i%groups))
		}
		squares = Stack(rows, 0)
	}
	return gaussian(squares, c[logDetName], d)
}

// sideBySide is how many proposals a turn of the loop evaluates: a product keeps to one processor, independent ones run
// on several.
func sideBySide(m int) int {
	for k := min(runtime.GOMAXPROCS(0), 8); k > 1; k-- {
		if m%k == 0 {
			return k
		}
	}
	return 1
}

// whiten is |L^-1 (x - mu)|^2 of each row of x, [N, D]: [N].
func whiten(inverse, mean, x *Node) *Node {
	d := mean.Shape().Dim(0)
	x = Sub(x, ExpandAxes(mean, 0))
	const parts = 4
	if d < 16*parts {
		return compute.RowSums(Square(Einsum("nd,ed->ne", x, inverse)))
	}
	var sum *Node
	for p := range parts {
		from, to := p*d/parts, (p+1)*d/parts
		rows := Slice(inverse, AxisRange(from, to), AxisRange(0, to))
		z := Einsum("nd,ed->ne", Slice(x, AxisRange(), AxisRange(0, to)), rows)
		if part := compute.RowSums(Square(z)); sum == nil {
			sum = part
		} else {
			sum = Add(sum, part)
		}
	}
	return sum
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

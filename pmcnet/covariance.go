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
	// spread turns standard normals z, [M, K, D], into draws of N(0, Sigma_m), [M, K, D].
	spread(c compute.Nodes, z *Node) *Node
	// logDensities are log N(x; mu_m, Sigma_m), float64 [M, N], of each proposal m at all draws, x, [N, D], which are
	// the K draws of each proposal one after another; mean is [M, D].
	logDensities(c compute.Nodes, mean, x *Node) *Node
	// times is Sigma_m v_m, [M, D].
	times(c compute.Nodes, v *Node) *Node
	// update is step d of Algorithm 1: the next covariances, and which of them are positive definite, bool [M]. The values
	// of the others have no meaning.
	update(c compute.Nodes, s scatter) (next compute.Nodes, definite *Node)
}

// family is the family that the settings choose.
func (a PMC) family() family {
	if a.Covariance == fullCovariance {
		return full{}
	}
	return diagonal{fixed: a.Covariance == FixedCovariance}
}

// shrinkage is the share by which the off-diagonal elements of the draws' covariance are reduced, in D dimensions. K
// draws have a covariance of rank below K, so full covariances need it if K is at most D.
func (a PMC) shrinkage(d int) float64 {
	if a.Covariance != fullCovariance || a.Draws > d {
		return 0
	}
	return float64(d) / float64(d+a.Draws)
}

// names returns the names of the family's entries in the state.
func (a PMC) names() []string {
	if a.Covariance == fullCovariance {
		return []string{covarianceName, lowerName, inverseName, logDetName}
	}
	return []string{varianceName}
}

const (
	covarianceName = "covariance" // Sigma, [M, D, D]
	lowerName      = "lower"      // L of Sigma = L L^T, [M, D, D]
	inverseName    = "inverse"    // L^-1, [M, D, D]
	logDetName     = "log_det"    // log det Sigma, [M]
	varianceName   = "variance"   // the diagonal of a diagonal covariance, [M, D]
)

// scatter is the contribution of an iteration's draws to each proposal's covariance, beta ((1 - eta) S^ + eta S~), with
// the weight of the previous covariance, 1 - beta. S^ is the covariance by the draws' weights and S~ that by the
// clipped weights, each about its own mean. This is the paper's (13); the authors' program begins with beta = 1, which
// forgets Sigma_1, and computes Bessel's factor, 1 - sum_k w_k^2, but does not use it.
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

// full keeps Sigma with its Cholesky factor.
type full struct{}

func (full) initial(g *Graph, dtype compute.DType, m, d int, sigma float64) compute.Nodes {
	one := unit(Zeros(g, shapes.Make(dtype)), m, d)
	return compute.Nodes{
		covarianceName: MulScalar(one, sigma*sigma), lowerName: MulScalar(one, sigma), inverseName: DivScalar(one, sigma),
		logDetName: AddScalar(Zeros(g, shapes.Make(dtype, m)), 2*float64(d)*math.Log(sigma)),
	}
}

func (full) spread(c compute.Nodes, z *Node) *Node { return Einsum("mde,mke->mkd", c[lowerName], z) }

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

func (diagonal) spread(c compute.Nodes, z *Node) *Node {
	return Mul(z, ExpandAxes(Sqrt(c[varianceName]), 1))
}

func (diagonal) logDensities(c compute.Nodes, mean, x *Node) *Node {
	squares := distances(c[varianceName], mean, x)
	return gaussian(squares, ReduceSum(Log(ConvertDType(c[varianceName], compute.Float64)), 1), mean.Shape().Dim(1))
}

// distances returns sum_d (x_d - mu_d)^2 / s_d^2 of each proposal at the draws x, [N, D]: float64 [M, N]. On a CPU that
// is computed as it stands, a few coordinates at a time. Elsewhere it is computed by products as sum x^2/s^2 - 2 sum x
// mu/s^2 + sum mu^2/s^2, whose terms are large compared with their sum, hence in float64.
func distances(variance, mean, x *Node) *Node {
	if g := x.Graph(); compute.CanLoop(g) && compute.OnCPU(g.Backend()) {
		return distancesInTurns(variance, mean, x)
	}
	variance, mean, x = wide(variance), wide(mean), wide(x)
	center := ReduceAndKeep(mean, ReduceMean, 0) // [1, D], subtracted to make the terms smaller
	mean, x = Sub(mean, center), Sub(x, center)
	precision := Reciprocal(variance)
	scaled := Mul(mean, precision)
	product := func(x, v *Node) *Node { return Einsum("nd,pd->pn", x, v) }
	out := Sub(product(Square(x), precision), MulScalar(product(x, scaled), 2))
	return Add(out, ExpandAxes(ReduceSum(Mul(scaled, mean), 1), 1))
}

// distancesInTurns computes distances in a loop, with the draws innermost, so that they fill the SIMD registers.
func distancesInTurns(variance, mean, x *Node) *Node {
	const coordinates = 8 // in a turn; the compiler does not unroll sums of 16
	m, d, n := mean.Shape().Dim(0), mean.Shape().Dim(1), x.Shape().Dim(0)
	turns := (d + coordinates - 1) / coordinates
	columns := func(x *Node) *Node { // [., D] to [D, .], with zeros up to whole turns
		missing := PadAxis{End: turns*coordinates - d}
		return Pad(Transpose(x, 0, 1), ScalarZero(x.Graph(), x.DType()), missing, PadAxis{})
	}
	outer := []*Node{columns(x), columns(mean), columns(Reciprocal(variance))}
	none := Zeros(x.Graph(), shapes.Make(compute.Float64, m, n))
	return compute.Loop(turns, outer, []*Node{none}, func(turn *Node, outer, carried []*Node) []*Node {
		from := MulScalar(turn, coordinates)
		part := func(x *Node, axis int) *Node { return ExpandAxes(compute.RowsFrom(x, from, coordinates), axis) }
		terms := Mul(Square(Sub(part(outer[0], 1), part(outer[1], 2))), part(outer[2], 2)) // [coordinates, M, N]
		return []*Node{Add(carried[0], wide(ReduceSum(terms, 0)))}
	})[0]
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

// unit is the identity, [M, D, D].
func unit(like *Node, m, d int) *Node {
	shape := shapes.Make(dtypes.Int32, m, d, d)
	return ConvertDType(Equal(Iota(like.Graph(), shape, 1), Iota(like.Graph(), shape, 2)), like.DType())
}

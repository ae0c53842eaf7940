package annealed

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"
)

// This file implements mixtures of multivariate Student-t distributions on the host, in float64: their densities,
// draws, and their fit to particles by expectation-maximisation (Peel and McLachlan 2000, "Robust mixture modelling
// using the t distribution").

// student is a t distribution with nu = dof degrees of freedom: mean + L z / sqrt(chi^2_nu / nu), z a vector of D
// standard normals.
type student struct {
	share float64 // weight in the mixture
	dof   float64
	mean  []float64     // [D]
	lower *mat.TriDense // L, [D, D]
}

// mixture of Student-t distributions, whose shares sum to 1.
type mixture []student

// distances are (x_j - mean)' (L L')^-1 (x_j - mean), for the rows of x, [J, D]: [J].
func (s student) distances(x *mat.Dense) []float64 {
	j, d := x.Dims()
	z := mat.NewDense(j, d, nil)
	for i := range j {
		floats.SubTo(z.RawRowView(i), x.RawRowView(i), s.mean)
	}
	blas64.Trsm(blas.Right, blas.Trans, 1, s.lower.RawTriangular(), z.RawMatrix()) // z' = L^-1 (x - mean)'
	out := make([]float64, j)
	for i := range out {
		out[i] = floats.Dot(z.RawRowView(i), z.RawRowView(i))
	}
	return out
}

// logDensity is the log-density at the given squared distances, without the share.
func (s student) logDensity(distances []float64) []float64 {
	d, nu, constant := float64(len(s.mean)), s.dof, s.logConstant()
	out := make([]float64, len(distances))
	for j, v := range distances {
		out[j] = constant - (nu+d)/2*math.Log1p(v/nu)
	}
	return out
}

// logConstant is the logarithm of the density at the mean, without the share.
func (s student) logConstant() float64 {
	d, nu := float64(len(s.mean)), s.dof
	a, _ := math.Lgamma((nu + d) / 2)
	b, _ := math.Lgamma(nu / 2)
	constant := a - b - d/2*math.Log(nu*math.Pi)
	for i := range s.mean {
		constant -= math.Log(s.lower.At(i, i))
	}
	return constant
}

// logDensity is the mixture's log-density, [J], at the rows of x, [J, D].
func (m mixture) logDensity(x *mat.Dense) []float64 {
	rows, _ := x.Dims()
	each := make([][]float64, len(m))
	for k, s := range m {
		each[k] = s.logDensity(s.distances(x))
		floats.AddConst(math.Log(s.share), each[k])
	}
	out, terms := make([]float64, rows), make([]float64, len(m))
	for j := range out {
		for k := range m {
			terms[k] = each[k][j]
		}
		out[j] = floats.LogSumExp(terms)
	}
	return out
}

// draw puts draws into the rows of x, [n, D].
func (s student) draw(rng *rand.Rand, x *mat.Dense) {
	n, _ := x.Dims()
	for i := range n {
		row := x.RawRowView(i)
		for c := range row {
			row[c] = rng.NormFloat64()
		}
	}
	blas64.Trmm(blas.Right, blas.Trans, 1, s.lower.RawTriangular(), x.RawMatrix()) // x' = L z'
	for i := range n {
		row := x.RawRowView(i)
		floats.Scale(math.Sqrt(s.dof/chiSquared(rng, s.dof)), row)
		floats.Add(row, s.mean)
	}
}

// draws makes n draws, [n, D], one component after another, from each its share (see counts).
func (m mixture) draws(rng *rand.Rand, n int) *mat.Dense {
	d := len(m[0].mean)
	x, from := mat.NewDense(n, d, nil), 0
	for k, count := range m.counts(n) {
		if count > 0 {
			m[k].draw(rng, x.Slice(from, from+count, 0, d).(*mat.Dense))
			from += count
		}
	}
	return x
}

// counts divides n draws among the components: each gets its share of n, rounded so that the counts sum to n (by the
// largest remainders).
func (m mixture) counts(n int) []int {
	counts, rest := make([]int, len(m)), make([]float64, len(m))
	left := n
	for k, s := range m {
		exact := s.share * float64(n)
		counts[k] = int(exact)
		rest[k] = float64(counts[k]) - exact
		left -= counts[k]
	}
	order := make([]int, len(m))
	floats.ArgsortStable(rest, order)
	for i := range left {
		counts[order[i%len(m)]]++
	}
	return counts
}

// chiSquared is a draw of the chi-squared distribution with nu degrees of freedom, nu >= 2 (Marsaglia and Tsang 2000).
func chiSquared(rng *rand.Rand, nu float64) float64 {
	d := nu/2 - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		z := rng.NormFloat64()
		v := 1 + c*z
		if v = v * v * v; v > 0 && math.Log(rng.Float64()) < z*z/2+d-d*v+d*math.Log(v) {
			return 2 * d * v
		}
	}
}

// Bounds of the degrees of freedom: below the least, a draw's variance is all but infinite; above the most, the
// component is practically a Gaussian.
const (
	leastDoF, mostDoF = 3, 200
	mostRounds        = 100  // of expectation-maximisation
	littleGain        = 1e-4 // gain of the mean log-density in a round below which a fit ends
)

// fitMixture fits n components to particles, the rows of x, [J, D], with weights, [J], that sum to 1. It starts from
// centres chosen by k-means++. Components left with too few particles for a covariance are dropped, so there may be
// fewer than n, or none. The only error is the context's, if it is cancelled.
func fitMixture(
	ctx context.Context, x *mat.Dense, weights []float64, n int, rng *rand.Rand,
) (m mixture, err error) {
	rows, _ := x.Dims()
	dof := 10.
	ones := make([]float64, rows)
	floats.AddConst(1, ones)
	for _, r := range nearest(x, weights, n, rng) {
		if s, ok := component(x, r, ones, dof); ok {
			m = append(m, s)
		}
	}
	before := math.Inf(-1)
	for range mostRounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(m) == 0 {
			return nil, nil
		}
		m.normalise()
		r, u, now := m.responsibilities(x, weights)
		if now-before < littleGain {
			return m, nil
		}
		before = now
		// M step: means, covariances, shares, and one nu for all components.
		dof = bestDoF(r, u, dof, float64(len(m[0].mean)))
		m = m[:0:0]
		for k := range r {
			if s, ok := component(x, r[k], u[k], dof); ok {
				m = append(m, s)
			} else {
				before = math.Inf(-1) // with one component fewer the density may fall
			}
		}
	}
	m.normalise()
	return m, nil
}

// responsibilities is the E step for the rows of x, [J, D], with weights, [J]. r[k][j] is the probability that particle
// j belongs to component k, times its weight; u[k][j] is the weight that the tails of component k give it. logDensity
// is the weighted mean of the mixture's log-density.
func (m mixture) responsibilities(x *mat.Dense, weights []float64) (r, u [][]float64, logDensity float64) {
	r, u = make([][]float64, len(m)), make([][]float64, len(m))
	for k, s := range m {
		u[k] = s.distances(x)
		r[k] = s.logDensity(u[k])
		floats.AddConst(math.Log(s.share), r[k])
		for j, v := range u[k] {
			u[k][j] = (s.dof + float64(len(s.mean))) / (s.dof + v)
		}
	}
	terms := make([]float64, len(m))
	for j, w := range weights {
		for k := range m {
			terms[k] = r[k][j]
		}
		sum := floats.LogSumExp(terms)
		logDensity += w * sum
		for k := range m {
			r[k][j] = w * math.Exp(r[k][j]-sum)
		}
	}
	return r, u, logDensity
}

// normalise makes the shares sum to 1.
func (m mixture) normalise() {
	sum := 0.
	for _, s := range m {
		sum += s.share
	}
	for k := range m {
		m[k].share /= sum
	}
}

// component is the M step for one component, given responsibilities r, [J], and tail weights u, [J]. The mean is
// weighted by r u, and the covariance is sum_j r_j u_j (x_j - mean) (x_j - mean)' / sum_j r_j. ok is false if the
// effective number of particles is too small, or their covariance is not positive definite.
func component(x *mat.Dense, r, u []float64, dof float64) (s student, ok bool) {
	rows, d := x.Dims()
	sum := floats.Sum(r)
	if !(sum*sum >= float64(d+2)*floats.Dot(r, r)) || sum == 0 {
		return s, false
	}
	s = student{share: sum, dof: dof, mean: make([]float64, d)}
	total := floats.Dot(r, u)
	for j := range rows {
		floats.AddScaled(s.mean, r[j]*u[j]/total, x.RawRowView(j))
	}
	centred := mat.NewDense(rows, d, nil)
	for j := range rows {
		row := centred.RawRowView(j)
		floats.SubTo(row, x.RawRowView(j), s.mean)
		floats.Scale(math.Sqrt(r[j]*u[j]/sum), row)
	}
	covariance := mat.NewSymDense(d, nil)
	covariance.SymOuterK(1, centred.T())
	s.lower, ok = lowerOf(covariance)
	return s, ok
}

// lowerOf is the Cholesky factor of a symmetric matrix; ok is false if it is not positive definite, or so nearly
// singular that a pivot is below the rounding error.
func lowerOf(a *mat.SymDense) (lower *mat.TriDense, ok bool) {
	d := a.SymmetricDim()
	var factor mat.Cholesky
	if !factor.Factorize(a) {
		return nil, false
	}
	lower = mat.NewTriDense(d, mat.Lower, nil)
	factor.LTo(lower)
	for i := range d {
		if v := lower.At(i, i); !(v*v > 1e-12*a.At(i, i)) {
			return nil, false
		}
	}
	return lower, true
}

// bestDoF is the nu that maximises the expected log-density, given responsibilities and tail weights computed with the
// previous nu (Peel and McLachlan 2000, eq. 30), by bisection on log nu.
func bestDoF(r, u [][]float64, before, d float64) float64 {
	mean, total := 0., 0.
	for k := range r {
		for j, w := range r[k] {
			mean += w * (math.Log(u[k][j]) - u[k][j])
			total += w
		}
	}
	mean /= total
	half := (before + d) / 2
	slope := func(nu float64) float64 {
		return math.Log(nu/2) - mathext.Digamma(nu/2) + 1 + mean + mathext.Digamma(half) - math.Log(half)
	}
	low, high := math.Log(leastDoF), math.Log(mostDoF)
	for range 50 {
		if mid := (low + high) / 2; slope(math.Exp(mid)) > 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp(low)
}

// nearest returns initial responsibilities, [n][J]: each particle, a row of x, [J, D], belongs with its weight to the
// nearest of n centres. The centres are chosen by k-means++ (Arthur and Vassilvitskii 2007), and then moved by ten
// rounds of Lloyd's algorithm. Distances are in units of the coordinates' standard deviations.
func nearest(x *mat.Dense, weights []float64, n int, rng *rand.Rand) (r [][]float64) {
	z := standardised(x, weights)
	centres := distantRows(z, weights, n, rng)
	for range 10 {
		r = make([][]float64, n)
		for k := range r {
			r[k] = make([]float64, len(weights))
		}
		for j, w := range weights {
			best, at := math.Inf(1), 0
			for k, centre := range centres {
				if v := squaredDistance(z.RawRowView(j), centre); v < best {
					best, at = v, k
				}
			}
			r[at][j] = w
		}
		for k, centre := range centres {
			sum := floats.Sum(r[k])
			if sum == 0 {
				continue
			}
			clear(centre)
			for j, w := range r[k] {
				if w > 0 {
					floats.AddScaled(centre, w/sum, z.RawRowView(j))
				}
			}
		}
	}
	return r
}

// standardised is x, [J, D], with weighted mean 0 and weighted standard deviation 1 in each column, unless it is
// constant.
func standardised(x *mat.Dense, weights []float64) *mat.Dense {
	rows, d := x.Dims()
	z := mat.NewDense(rows, d, nil)
	for c := range d {
		column := mat.Col(nil, c, x)
		mean := floats.Dot(column, weights)
		floats.AddConst(-mean, column)
		square := 0.
		for j, v := range column {
			square += weights[j] * v * v
		}
		if square > 0 {
			floats.Scale(1/math.Sqrt(square), column)
		}
		z.SetCol(c, column)
	}
	return z
}

// distantRows returns copies of n rows of z, [J, D], drawn one after another, the first with probabilities proportional
// to the weights, [J], the others to the weights times the squared distance to the nearest row so far (k-means++).
func distantRows(z *mat.Dense, weights []float64, n int, rng *rand.Rand) [][]float64 {
	draw := func(p []float64) int {
		at := rng.Float64() * floats.Sum(p)
		for j, v := range p {
			if at -= v; at < 0 {
				return j
			}
		}
		return len(p) - 1
	}
	var centres [][]float64
	chance := slices.Clone(weights)
	closest := make([]float64, len(weights))
	floats.AddConst(math.Inf(1), closest)
	for range n {
		centre := slices.Clone(z.RawRowView(draw(chance)))
		centres = append(centres, centre)
		for j, w := range weights {
			closest[j] = min(closest[j], squaredDistance(z.RawRowView(j), centre))
			chance[j] = w * closest[j]
		}
	}
	return centres
}

func squaredDistance(a, b []float64) float64 {
	v := floats.Distance(a, b, 2)
	return v * v
}

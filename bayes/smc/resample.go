package smc

import (
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Resampler is a resampling scheme: it draws J ancestors, the particles that are copied, from J weighted particles. In
// both schemes particle j is drawn J w_j times in the mean; they differ in how much the number of its copies varies.
type Resampler string

// The schemes. The zero value is Stratified; Tempered resamples by Multinomial.
const (
	// Multinomial makes J independent draws: an estimate has a variance of order 1/J.
	Multinomial Resampler = "multinomial"
	// Stratified divides the cumulative weights, from 0 to 1, into J equal strata, and draws one uniform number in each
	// (Kitagawa 1996). Its variance is smaller; of what order in J is not known without assumptions of smoothness. Outside
	// of Tempered take it if you do not know.
	Stratified Resampler = "stratified"
)

// Draw draws n ancestors of J particles with the given log-weights, [J], which need not be normalised: their numbers,
// int32 [n], ascending, so that copies of one particle lie side by side. Particle j is drawn n w_j times in the mean,
// one of weight 0 never. At least one weight must be positive. The sums are in float64: in float32 they would pick
// particles of weight 0.
func (r Resampler) Draw(logWeights *graph.Node, n int, rng random.Stream) *graph.Node {
	weights := ConvertDType(logWeights, dtypes.Float64)
	weights = Exp(Sub(weights, compute.FiniteMax(weights)))
	if r == Multinomial {
		drawn := rng.Categorical(weights, n)
		none := Zeros(weights.Graph(), shapes.Make(dtypes.Int32, weights.Shape().Dim(0)))
		counts := ScatterSum(none, ExpandAxes(drawn, -1), OnesLike(drawn), false, false)
		return fromEnds(CumSum(counts, 0), n)
	}
	return onePerStratum(weights, rng.Uniform(dtypes.Float64, n))
}

// onePerStratum gives slot i of n, counted from 0, the particle at which the cumulative weights reach (i + u_i)/n.
// Instead of searching for the particle of each slot, it computes where the slots of each particle end. Let C_j be n
// times the cumulative weight of particle j. C_j lies in stratum s = floor(C_j). The first slot beyond the particles up
// to j is s+1 if u_s is below the fraction C_j - s, and s otherwise.
func onePerStratum(weights, u *Node) *Node {
	last, n := weights.Shape().Dim(0)-1, u.Shape().Dim(0)
	cumulative := CumSum(weights, 0)
	total := Slice(cumulative, AxisElem(last)) // [1]
	inStrata := MulScalar(Div(cumulative, total), float64(n))
	stratum := MinScalar(Floor(inStrata), float64(n-1))
	index := ConvertDType(stratum, dtypes.Int32)
	below := LessThan(Gather(u, ExpandAxes(index, -1)), Sub(inStrata, stratum))
	return fromEnds(Add(index, ConvertDType(below, dtypes.Int32)), n)
}

// fromEnds gives the ancestor of each of n slots, given ends, [J], ascending: ends_j is the first slot that does not
// belong to particles up to j. A slot's ancestor is the number of particles whose slots end at or before it, so it
// takes a scatter and a cumulative sum, no search and no sort.
func fromEnds(ends *Node, n int) *Node {
	ended := Scatter(ExpandAxes(ends, -1), OnesLike(ends), shapes.Make(dtypes.Int32, n+1), true, false)
	return MinScalar(CumSum(Slice(ended, AxisRange(0, n)), 0), float64(ends.Shape().Dim(0)-1))
}

// Select copies the rows of x, [J, ...], that ancestors, int32 [n], names: [n, ...].
func Select(x, ancestors *graph.Node) *graph.Node {
	return Gather(x, ExpandAxes(ancestors, -1), true)
}

// UniqueAncestors is the number of different particles among ascending ancestors, int32 [J]: a scalar of the given
// type.
func UniqueAncestors(ancestors *graph.Node, dtype dtypes.DType) *graph.Node {
	n := ancestors.Shape().Dim(0)
	if n == 1 {
		return OnePlus(ScalarZero(ancestors.Graph(), dtype))
	}
	changes := NotEqual(Slice(ancestors, AxisRange(1, n)), Slice(ancestors, AxisRange(0, n-1)))
	return OnePlus(ReduceAllSum(ConvertDType(changes, dtype)))
}

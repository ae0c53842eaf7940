package smc

import (
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// Resampler is a scheme that draws J ancestors from J weighted particles, such that particle j is drawn J w_j times in the mean.
type Resampler string

// The schemes, from the noisiest to the quietest. The zero value is Stratified.
const (
	Multinomial Resampler = "multinomial" // independent draws; variance of order 1/J
	Residual    Resampler = "residual"    // floor(J w_j) copies, the rest multinomial (Liu and Chen 1998)
	Stratified  Resampler = "stratified"  // one uniform in each of J equal strata (Kitagawa 1996); smaller variance, no order claimed without smoothness
	Systematic  Resampler = "systematic"  // one uniform for all strata (Carpenter, Clifford and Fearnhead 1999); usually quietest, no guarantee
)

// Check returns an error for a scheme that is not one of the four.
func (r Resampler) Check() error {
	switch r {
	case "", Multinomial, Residual, Stratified, Systematic:
		return nil
	}
	return fmt.Errorf("smc: unknown resampling scheme %q: use multinomial, residual, stratified or systematic", string(r))
}

// Resample draws the ancestors of J particles with the given log-weights, [J], which need not be normalised: int32 [J], ascending, so
// that copies of one particle lie side by side. A particle of weight 0 is never drawn. At least one weight must be positive. The sums are
// in float64: in float32 they would pick particles of weight 0.
func (r Resampler) Resample(logWeights *Node, rng random.Stream) *Node {
	weights := ConvertDType(logWeights, dtypes.Float64)
	weights = Exp(Sub(weights, compute.FiniteMax(weights)))
	n := weights.Shape().Dim(0)
	switch r {
	case Multinomial:
		return expand(count(rng.Categorical(weights, n), nil))
	case Residual:
		return residual(weights, rng)
	case Systematic:
		u := rng.Uniform(dtypes.Float64, 1)
		return onePerStratum(weights, BroadcastToDims(u, n))
	default:
		return onePerStratum(weights, rng.Uniform(dtypes.Float64, n))
	}
}

// onePerStratum gives slot i the ancestor of the point (i + u_i)/J of the cumulative weights. It turns the search round: particle j's
// cumulative weight C_j, in units of strata, lies in stratum s = floor(C_j), so the first slot that does not belong to particles up to j
// is s, or s+1 if u_s is below the fraction.
func onePerStratum(weights, u *Node) *Node {
	n := weights.Shape().Dim(0)
	cumulative := CumSum(weights, 0)
	total := Slice(cumulative, AxisElem(n-1)) // [1]
	inStrata := MulScalar(Div(cumulative, total), float64(n))
	stratum := MinScalar(Floor(inStrata), float64(n-1))
	index := ConvertDType(stratum, dtypes.Int32)
	below := LessThan(Gather(u, ExpandAxes(index, -1)), Sub(inStrata, stratum))
	return fromEnds(Add(index, ConvertDType(below, dtypes.Int32)))
}

// residual gives particle j floor(J w_j) copies and draws the remaining slots from what is left over.
func residual(weights *Node, rng random.Stream) *Node {
	n := weights.Shape().Dim(0)
	expected := MulScalar(Div(weights, ReduceAllSum(weights)), float64(n))
	copies := Floor(expected)
	missing := Sub(ConstAs(weights, float64(n)), ReduceAllSum(copies))
	drawn := rng.Categorical(Sub(expected, copies), n)
	wanted := LessThan(Iota(weights.Graph(), weights.Shape(), 0), missing) // only so many of the draws
	return expand(Add(ConvertDType(copies, dtypes.Int32), count(drawn, wanted)))
}

// count says how often each of J particles is among the ancestors, int32 [J]; only where wanted, [J], is true, if it is given.
func count(ancestors, wanted *Node) *Node {
	ones := OnesLike(ancestors)
	if wanted != nil {
		ones = ConvertDType(wanted, dtypes.Int32)
	}
	return ScatterSum(ZerosLike(ancestors), ExpandAxes(ancestors, -1), ones, false, false)
}

// expand lists each particle as often as its count says, ascending; the counts sum to J.
func expand(counts *Node) *Node { return fromEnds(CumSum(counts, 0)) }

// fromEnds gives the ancestor of each slot, where ends, [J], ascending, is the first slot that does not belong to particles up to j: a
// slot's ancestor is the number of particles that end at or before it. No search and no sort.
func fromEnds(ends *Node) *Node {
	n := ends.Shape().Dim(0)
	ended := Scatter(ExpandAxes(ends, -1), OnesLike(ends), shapes.Make(dtypes.Int32, n+1), true, false)
	return MinScalar(CumSum(Slice(ended, AxisRange(0, n)), 0), float64(n-1))
}

// Select gathers the ancestors' rows: x is [J, ...], ancestors int32 [J].
func Select(x, ancestors *Node) *Node {
	return Gather(x, ExpandAxes(ancestors, -1), true)
}

// UniqueAncestors counts the different particles among ascending ancestors, int32 [J]: a scalar of the given type.
func UniqueAncestors(ancestors *Node, dtype dtypes.DType) *Node {
	n := ancestors.Shape().Dim(0)
	changes := NotEqual(Slice(ancestors, AxisRange(1, n)), Slice(ancestors, AxisRange(0, n-1)))
	return OnePlus(ReduceAllSum(ConvertDType(changes, dtype)))
}

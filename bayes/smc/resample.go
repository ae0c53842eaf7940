package smc

import (
	"fmt"

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
// that copies of one particle lie side by side. A particle of weight 0 is never drawn. At least one weight must be positive. The sums are in float64: in
// float32 they would pick particles of weight 0.
func (r Resampler) Resample(logWeights *Node, rng random.Stream) *Node {
	weights := ConvertDType(logWeights, dtypes.Float64)
	weights = Exp(Sub(weights, FiniteMax(weights)))
	n := weights.Shape().Dim(0)
	switch r {
	case Multinomial:
		return Sort(rng.Categorical(weights, n), 0, true)
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
// is s, or s+1 if u_s is below the fraction. Counting how many particles end at or before a slot gives its ancestor: no search at all.
func onePerStratum(weights, u *Node) *Node {
	g := weights.Graph()
	n := weights.Shape().Dim(0)
	cumulative := CumSum(weights, 0)
	total := Slice(cumulative, AxisElem(n-1)) // [1]
	inStrata := MulScalar(Div(cumulative, total), float64(n))
	stratum := MinScalar(Floor(inStrata), float64(n-1))
	index := ConvertDType(stratum, dtypes.Int32)
	below := LessThan(Gather(u, ExpandAxes(index, -1)), Sub(inStrata, stratum))
	firstBeyond := Add(index, ConvertDType(below, dtypes.Int32)) // [J], in 0..J

	ends := Scatter(ExpandAxes(firstBeyond, -1), Ones(g, shapes.Make(dtypes.Int32, n)), shapes.Make(dtypes.Int32, n+1), true, false)
	ancestors := CumSum(Slice(ends, AxisRange(0, n)), 0)
	return MinScalar(ancestors, float64(n-1))
}

// residual gives particle j floor(J w_j) copies and draws the remaining slots from what is left over.
func residual(weights *Node, rng random.Stream) *Node {
	g := weights.Graph()
	n := weights.Shape().Dim(0)
	expected := MulScalar(Div(weights, ReduceAllSum(weights)), float64(n))
	copies := Floor(expected)
	// Slots below the sum of copies are deterministic: slot i belongs to the particle whose cumulative count first exceeds i.
	cumulative := ConvertDType(CumSum(copies, 0), dtypes.Float64)
	fixed := Slice(cumulative, AxisElem(n-1)) // [1]
	slot := Iota(g, shapes.Make(dtypes.Float64, n), 0)
	isFixed := LessThan(slot, fixed)
	share := Div(AddScalar(slot, 0.5), MaxScalar(fixed, 1.0))
	deterministic := random.InverseCDF(cumulative, Where(isFixed, share, ZerosLike(share)))
	drawn := rng.Categorical(Sub(expected, copies), n)
	return Sort(Where(isFixed, deterministic, drawn), 0, true)
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

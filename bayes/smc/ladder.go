package smc

import (
	"math"

	"gobnn/bayes/compute"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// step is how far the likelihood's power is to rise: `fixed` if that is above 0; else the step that LargestStep finds,
// at most `most`, for an effective sample size of Threshold J: a float64 scalar.
func (s *Stages) step(logWeights, logLikelihood, fixed, most *Node) *Node {
	const rounds = 3 // an error of 2^-15
	row := func(x *Node) *Node { return ExpandAxes(x, 0) }
	found := Reshape(LargestStep(row(logWeights), row(logLikelihood), s.Threshold*float64(s.Particles), most, rounds))
	return Where(GreaterThan(fixed, ZerosLike(fixed)), fixed, found)
}

// LargestStep is for each of G sets of J particles, whose log-weights and potentials l are [G, J], the largest step, at
// most `most`, a float64 scalar, at which the effective sample size of weights w_j exp(step l_j) is at least wanted
// (Del Moral, Doucet and Jasra 2012, section 3.3; Jasra et al. 2011). Where no step is so small, it is a step so small
// that only particles without likelihood lose their weight. All of it is in float64: [G].
//
// The root is enclosed between neighbours of a grid of steps, each time the finer one between the two: first of
// powers of two, then so many rounds of 32 equal parts, which leave a relative error of 2^(-5 rounds). So it is some
// rows of a table [steps, G, J] at a time, and no loop.
func LargestStep(logWeights, logLikelihood *graph.Node, wanted float64, most *graph.Node, rounds int) *graph.Node {
	const octaves, parts = 64, 32
	sets := logWeights.Shape().Dim(0)
	w := ConvertDType(logWeights, compute.Float64)
	l := ConvertDType(compute.Only(IsFinite(logWeights), logLikelihood), compute.Float64)
	l = Sub(l, finiteMaxOfRows(l)) // at most 0
	// enough says at which of the steps, [n, G], the effective sample size is still large enough, as 1 or 0.
	enough := func(steps *Node) *Node {
		table := Add(ExpandAxes(w, 0), Mul(ExpandAxes(steps, 2), ExpandAxes(l, 0)))
		table = Sub(table, finiteMaxOfRows(table))
		weights := Exp(table)
		ess := Div(Square(ReduceSum(weights, 2)), ReduceSum(Square(weights), 2))
		return ConvertDType(GreaterOrEqual(ess, ConstAs(ess, wanted)), compute.Float64)
	}
	g := logWeights.Graph()
	grid := func(n int) *Node { return AddScalar(Iota(g, shapes.Make(compute.Float64, n, sets), 0), 1) } // 1 to n
	// The largest power of two below the root; 2^-64 of the way if there is none.
	powers := Mul(Exp(MulScalar(SubScalar(grid(octaves), octaves), math.Ln2)), most) // 2^-63 to 1 times most
	low := ReduceMax(Mul(enough(powers), powers), 0)                                 // [G]
	low = Max(low, MulScalar(most, math.Pow(2, -octaves)))
	high := Min(MulScalar(low, 2), most)
	for range rounds {
		width := MulScalar(Sub(high, low), 1./parts)
		steps := Add(ExpandAxes(low, 0), Mul(grid(parts), ExpandAxes(width, 0)))
		low = ReduceMax(Concatenate([]*Node{ExpandAxes(low, 0), Mul(enough(steps), steps)}, 0), 0)
		high = Min(Add(low, width), high)
	}
	return low
}

// finiteMaxOfRows is the largest element along the last axis, which is kept, or 0 where none is finite.
func finiteMaxOfRows(x *Node) *Node {
	m := ReduceAndKeep(x, ReduceMax, -1)
	return Where(IsFinite(m), m, ZerosLike(m))
}

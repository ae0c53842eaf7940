package smc

import (
	"math"

	"gobnn/bayes/compute"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// step returns the increase of the likelihood's power, a scalar. It is `fixed`, if that is above 0. Else it is the
// largest step, at most `most`, at which the weights w_j exp(step l_j) have an effective sample size of at least
// Threshold J; l are the log-likelihoods, [J] (Del Moral, Doucet and Jasra 2012, section 3.3; Jasra et al. 2011). If no
// step is small enough for that, it is 2^-64 of `most`, so small that only particles whose likelihood is 0 lose their
// weight. The computation is in float64.
//
// The effective sample size is computed for many steps at once, as rows of a table [steps, J], instead of one after
// another in a loop. The first table has powers of two. Three more divide the interval between the largest step that is
// small enough and the next one into 32 equal parts. That leaves a relative error of 2^-15.
func (s *Stages) step(logWeights, logLikelihood, fixed, most *Node) *Node {
	const octaves, parts, rounds = 64, 32, 3
	w := ConvertDType(logWeights, compute.Float64)
	l := ConvertDType(compute.Only(IsFinite(logWeights), logLikelihood), compute.Float64)
	l = Sub(l, compute.FiniteMax(l)) // at most 0
	wanted := s.Threshold * float64(s.Particles)
	// enough says at which of the steps, [n], the effective sample size is still large enough, as 1 or 0.
	enough := func(steps *Node) *Node {
		table := Add(ExpandAxes(w, 0), Mul(ExpandAxes(steps, 1), ExpandAxes(l, 0)))
		table = Sub(table, ReduceAndKeep(table, ReduceMax, 1))
		weights := Exp(table)
		ess := Div(Square(ReduceSum(weights, 1)), ReduceSum(Square(weights), 1))
		return ConvertDType(GreaterOrEqual(ess, ConstAs(ess, wanted)), compute.Float64)
	}
	g := logWeights.Graph()
	grid := func(n int) *Node { return AddScalar(Iota(g, shapes.Make(compute.Float64, n), 0), 1) } // 1 to n
	// The largest power of two that is enough; 2^-64 of the way if there is none.
	powers := Mul(Exp(MulScalar(SubScalar(grid(octaves), octaves), math.Ln2)), most) // 2^-63 to 1 times most
	low := ReduceAllMax(Mul(enough(powers), powers))
	low = Max(low, MulScalar(most, math.Pow(2, -octaves)))
	high := Min(MulScalar(low, 2), most)
	for range rounds {
		steps := Add(low, Mul(MulScalar(grid(parts), 1./parts), Sub(high, low)))
		width := MulScalar(Sub(high, low), 1./parts)
		low = ReduceAllMax(Concatenate([]*Node{Reshape(low, 1), Mul(enough(steps), steps)}, 0))
		high = Min(Add(low, width), high)
	}
	return Where(GreaterThan(fixed, ZerosLike(fixed)), fixed, low)
}

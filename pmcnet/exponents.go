package pmcnet

import (
	"gobnn/bayes/compute"

	. "github.com/gomlx/gomlx/core/graph"
)

// exponents are for each row of log-weights, [G, J], float64, the largest power, at most 1, at which their effective
// sample size is at least wanted: [G]. It falls as the power rises, so the power is found by bisection, to 2^-60. Where
// fewer weights than wanted are above 0, the power is 0.
func exponents(l *Node, wanted float64) *Node {
	const rounds = 60
	l = Sub(l, maxOfRows(l)) // at most 0
	enough := func(l, power *Node) *Node {
		weights := Exp(Mul(l, ExpandAxes(power, 1)))
		ess := Div(Square(compute.RowSums(weights)), compute.RowSums(Square(weights)))
		return GreaterOrEqual(ess, ConstAs(ess, wanted))
	}
	halve := func(l, low, step *Node) []*Node {
		step = MulScalar(step, .5)
		higher := Add(low, step)
		return []*Node{Where(enough(l, higher), higher, low), step}
	}
	one := OnesLike(Reshape(maxOfRows(l), l.Shape().Dim(0)))
	carried := []*Node{ZerosLike(one), one}
	if compute.CanLoop(l.Graph()) {
		carried = compute.Loop(rounds, []*Node{l}, carried, func(_ *Node, outer, carried []*Node) []*Node {
			return halve(outer[0], carried[0], carried[1])
		})
	} else {
		for range rounds {
			carried = halve(l, carried[0], carried[1])
		}
	}
	return Where(enough(l, one), one, carried[0])
}

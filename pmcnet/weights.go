package pmcnet

import (
	"math"

	"gobnn/bayes/compute"

	. "github.com/gomlx/gomlx/core/graph"
)

// This file makes the weights of PMC.Weights from the honest ones.

// weights makes the weights of the draws from the honest ones, [M, K]. exponent is their lambda. Tempered weights have
// an effective sample size of at least a share of the draws.
func (a PMC) weights(honest *Node, share float64) (weights, exponent *Node) {
	m, k := honest.Shape().Dim(0), honest.Shape().Dim(1)
	one := ConstAs(honest, 1.)
	switch a.Weights {
	case Tempered:
		all := Reshape(honest, 1, m*k)
		lambda := exponents(all, share*float64(m*k))
		return Reshape(power(all, ExpandAxes(lambda, 1)), m, k), Reshape(lambda)
	case Floored: // log(w + c) = max(log w, log c) + log(1 + exp(-|log w - log c|)) with c = 1e-50
		l := Where(IsFinite(honest), honest, ConstAs(honest, -1e4))
		floor := ConstAs(l, -50*math.Ln10)
		sum := Add(Max(l, floor), Log1P(Exp(Neg(Abs(Sub(l, floor))))))
		return sum, one
	}
	return honest, one
}

// power is l times a power, at least 0, where l = -Inf stays so.
func power(l, p *Node) *Node {
	return compute.Only(IsFinite(l), Mul(compute.Finite(l), BroadcastToShape(p, l.Shape())))
}

// clip puts the n largest of each row of log-weights, [G, J], down to the next largest; where that is -Inf, the row
// stays as it is.
func clip(l *Node, n int) *Node {
	if n = min(n, l.Shape().Dim(1)-1); n < 1 {
		return l
	}
	largest, _ := TopK(l, n+1, 1)
	next := Slice(largest, AxisRange(), AxisElem(n)) // [G, 1]
	next = Where(IsFinite(next), next, Slice(largest, AxisRange(), AxisElem(0)))
	return Min(l, BroadcastToShape(next, l.Shape()))
}

// exponents returns, for each row of log-weights, [G, J], float64, the largest power, at most 1, at which their
// effective sample size is at least wanted: [G]. It falls as the power rises, so the power is found by bisection, to
// 2^-60. Where fewer weights than wanted are above 0, the power is 0.
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

// maxOfRows is the largest log-weight of each row, [G, 1]; 0 where all are -Inf.
func maxOfRows(l *Node) *Node {
	largest := ReduceAndKeep(l, ReduceMax, 1)
	return Where(IsFinite(largest), largest, ZerosLike(largest))
}

package compute

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// The functions of this file keep what is not finite out of sums, in a graph; they panic as GoMLX does.

// Gate turns what is not finite into -Inf: a density that cannot be evaluated is no density.
func Gate(logDensity *graph.Node) *graph.Node { return Only(IsFinite(logDensity), logDensity) }

// Only is logDensity where which is true, and -Inf elsewhere; both are of one shape.
func Only(which, logDensity *graph.Node) *graph.Node {
	return Where(which, logDensity, BroadcastToShape(ConstAs(logDensity, math.Inf(-1)), logDensity.Shape()))
}

// Finite turns what is not finite into 0, so that a weight of 0 takes it out of a sum.
func Finite(x *graph.Node) *graph.Node { return Where(IsFinite(x), x, ZerosLike(x)) }

// FiniteMax is the largest element, a scalar, or 0 where none is finite: what to subtract before exponentials.
func FiniteMax(x *graph.Node) *graph.Node {
	m := ReduceAllMax(StopGradient(x))
	return Where(IsFinite(m), m, ZerosLike(m))
}

// LogSumExp is log sum exp x over an axis, which is kept with size 1; -Inf where all are -Inf.
func LogSumExp(x *graph.Node, axis int) *graph.Node {
	m := ReduceAndKeep(StopGradient(x), ReduceMax, axis)
	m = Where(IsFinite(m), m, ZerosLike(m))
	return Add(m, Log(ReduceAndKeep(Exp(Sub(x, m)), ReduceSum, axis)))
}

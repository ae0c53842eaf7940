package compute

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// The functions of this file build graphs that keep non-finite numbers out of sums; they panic as GoMLX does.

// Gate replaces log-densities that are not finite by -Inf: where a density cannot be evaluated it counts as 0.
func Gate(logDensity *graph.Node) *graph.Node { return Only(IsFinite(logDensity), logDensity) }

// Only is logDensity where which is true, and -Inf elsewhere; both are of one shape.
func Only(which, logDensity *graph.Node) *graph.Node {
	return Where(which, logDensity, BroadcastToShape(ConstAs(logDensity, math.Inf(-1)), logDensity.Shape()))
}

// Finite replaces numbers that are not finite by 0, since a weight of 0 times NaN would be NaN.
func Finite(x *graph.Node) *graph.Node { return Where(IsFinite(x), x, ZerosLike(x)) }

// FiniteMax is the largest element, a scalar, or 0 if none is finite, to subtract before exponentials.
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

// Epsilon is the relative rounding error of float32 or float64: the distance from 1 to the next larger number.
func Epsilon(dtype DType) float64 {
	if dtype == Float64 {
		return math.Pow(2, -52)
	}
	return math.Pow(2, -23)
}

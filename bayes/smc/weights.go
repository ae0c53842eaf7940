package smc

import (
	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Normalise shifts log-weights, [J], so that their exponentials sum to 1, and also returns the log of their sum, a
// scalar. Weights that are all 0, that is -Inf, stay as they are.
func Normalise(logWeights *graph.Node) (normalised, logSum *graph.Node) {
	m := compute.FiniteMax(logWeights)
	shifted := Sub(logWeights, m) // m first: beside a large m rounding would lose the sum's logarithm
	logSum = Reshape(compute.LogSumExp(shifted, 0))
	return Where(IsFinite(logSum), Sub(shifted, logSum), logWeights), Add(m, logSum)
}

// EffectiveSampleSize is 1 / sum_j w_j^2 of normalised log-weights, [J], a scalar.
func EffectiveSampleSize(normalised *graph.Node) *graph.Node {
	return Reciprocal(ReduceAllSum(Exp(MulScalar(normalised, 2))))
}

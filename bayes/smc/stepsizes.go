package smc

import (
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	. "github.com/gomlx/gomlx/core/graph"
)

// One step size does not suit modes of different widths: one that suits the wide mode is rejected throughout a narrow
// one, whose particles then never move, though the mean acceptance looks right. So each particle draws its own step at
// each transition, independently of where it is, which leaves every distribution invariant: half of the particles take
// the step that is adapted, the others a share of it that is the square of a uniform number. A fifth of all steps are
// below a sixth of the adapted one, and a tenth below a twenty-fifth. Only full steps count for the adaptation.

// stepShares draws the share of the step size that each of n particles takes in a transition, [n], and which of the
// shares are full, 1 or 0, [n].
func stepShares(rng random.Stream, dtype compute.DType, n int) (shares, full *Node) {
	u := AddScalar(MulScalar(rng.Named("step sizes").Uniform(dtype, n), 2), -1) // in -1 to 1
	short := GreaterThan(u, ZerosLike(u))
	return Where(short, Square(u), OnesLike(u)), Where(short, ZerosLike(u), OnesLike(u))
}

// ofFull is the mean of values over axis, counting those with full steps only; where there is none, the mean of all.
func ofFull(values, full *Node, axis int) *Node {
	count := ReduceSum(full, axis)
	some := GreaterThan(count, ZerosLike(count))
	return Where(some, Div(ReduceSum(Mul(values, full), axis), Max(count, OnesLike(count))), ReduceMean(values, axis))
}

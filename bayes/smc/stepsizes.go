package smc

import (
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	. "github.com/gomlx/gomlx/core/graph"
)

// One step size does not suit modes of different widths: one that suits the wide mode is rejected throughout a narrow
// one, whose particles then never move, though the mean acceptance looks right. So each particle has its own step at
// each transition, independently of where it is, which leaves every distribution invariant: the step that is adapted,
// and at every other transition a share of it that is the square of a uniform number. Of these shares two fifths are
// below a sixth, and a fifth below a twenty-fifth. Only full steps count for the adaptation. Neighbours take turns, so
// that at each transition half of the particles take full steps, and no particle goes without them for long.

// stepShares draws the share of the step size that each of n particles takes in a transition, [n], and which of the
// shares are full, 1 or 0, [n]: those of even particles if odd, a scalar, is 0, and those of odd ones if it is 1.
func stepShares(rng random.Stream, dtype compute.DType, n int, odd *Node) (shares, full *Node) {
	u := rng.Named("step sizes").Uniform(dtype, n)
	even := OneMinus(ModScalar(Iota(u.Graph(), u.Shape(), 0), 2))
	full = Where(GreaterThan(BroadcastToShape(odd, u.Shape()), ZerosLike(u)), OneMinus(even), even)
	return Where(GreaterThan(full, ZerosLike(u)), OnesLike(u), Square(u)), full
}

// ofFull is the mean of values over axis, counting those with full steps only.
func ofFull(values, full *Node, axis int) *Node {
	return Div(ReduceSum(Mul(values, full), axis), ReduceSum(full, axis))
}

package smc

import (
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	. "github.com/gomlx/gomlx/core/graph"
)

// One step size does not suit modes of different widths. A step that suits the wide mode is always rejected in a narrow
// one: its particles never move, though the mean acceptance looks right. So each particle has its own step at each
// transition. It takes the full adapted step, and at every other transition only a share of it, the square of a uniform
// number. The share does not depend on where the particle is, so every distribution is left invariant. Two fifths of
// the shares are below a sixth, and a fifth are below a twenty-fifth. Only full steps count for the adaptation.
// Neighbours take turns, so that at each transition half of the particles take full steps, and no particle goes without
// them for long.

// stepShares draws the share of the step size that each of n particles takes in a transition, [n]. full, [n], is 1
// where the share is the whole step, else 0: the even particles take it if the scalar odd is 0, the odd ones if it is
// 1.
func stepShares(rng random.Stream, dtype compute.DType, n int, odd *Node) (shares, full *Node) {
	u := rng.Named("step sizes").Uniform(dtype, n)
	even := OneMinus(ModScalar(Iota(u.Graph(), u.Shape(), 0), 2))
	full = Where(GreaterThan(BroadcastToShape(odd, u.Shape()), ZerosLike(u)), OneMinus(even), even)
	return Where(GreaterThan(full, ZerosLike(u)), OnesLike(u), Square(u)), full
}

// ofFull is the mean of values, [n], counting those with full steps only.
func ofFull(values, full *Node) *Node {
	return Div(ReduceSum(Mul(values, full), 0), ReduceSum(full, 0))
}

// trajectorySteps is the number of leapfrog steps of a transition, given the transition's number. It varies evenly by
// up to 30 % about a length, so that trajectories do not resonate with a period of the dynamics; it is the same for all
// particles, so that none waits for another.
func trajectorySteps(length float64, transition int) int {
	_, part := math.Modf(float64(transition) * golden)
	return int(math.Round(length * (1 + jitter*(2*part-1))))
}

const (
	jitter = 0.3
	golden = math.Phi - 1 // its multiples modulo 1 fill the range from 0 to 1 evenly
)

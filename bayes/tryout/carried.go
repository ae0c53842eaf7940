package tryout

import (
	"math"

	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// The differences that rounding may make, and the share of chains with larger ones from which a kernel is refused.
const (
	carriedDensity  = 1e-2 // of log-densities, beside half of their digits
	carriedGradient = .1   // of gradients, over their length
	carriedChains   = .1
)

// Carried compares the log-densities, [J], and gradients, [J, D], of a target at phi with those that a kernel carries:
// the numbers of particles whose log-density is finite, and of those with another log-density, or another gradient,
// which is nil if none is carried.
func Carried(density, carriedDensities, gradient, carriedGradients *graph.Node) *graph.Node {
	there := IsFinite(density)
	allowed := AddScalar(MulScalar(Abs(density), math.Sqrt(compute.Epsilon(density.DType()))), carriedDensity)
	other := And(there, Not(LessOrEqual(Abs(Sub(density, carriedDensities)), allowed)))
	record := []*Node{count(density, there), count(density, other)}
	if gradient != nil {
		squares := func(x *Node) *Node { return ReduceSum(Square(x), 1) }
		most := MulScalar(Add(squares(gradient), squares(carriedGradients)), carriedGradient*carriedGradient)
		other := And(there, Not(LessOrEqual(squares(Sub(gradient, carriedGradients)), most)))
		record = append(record, count(density, other))
	}
	return Concatenate(record, 0)
}

// Stale says whether the kernel is refused: too many of the compared particles carry other values than the target's.
func Stale(other, of float64) bool { return other > carriedChains*of }

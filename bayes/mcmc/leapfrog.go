package mcmc

import (
	"gobnn/bayes/compute"
	"gobnn/bayes/density"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Leapfrog is one step of Hamiltonian dynamics by the leapfrog integrator (Neal 2011, section 2.3, eq. 2.28 to 2.30),
// from a state with its gradient, and a momentum, [J, D]: it returns both at the step's end. HMC, NUTS and guided
// proposals use it.
//
// stepSize is a scalar, or [J] for a step of each particle; its sign is the direction of time. The momentum is in units
// of the tuning's scales s, so that under the canonical distribution it is standard normal whatever they are:
//
//	p <- p + h/2 s grad,  phi <- phi + h s p,  p <- p + h/2 s grad
//
// which is the leapfrog step for masses of 1/s^2. The map preserves volume, and a step of -h goes back. It costs one
// gradient. The tuning's step size is not read. Where the log-density at the end, or its gradient, is not finite, the
// state has log-density -Inf and gradient 0 (see Start); Auxiliary is left as it is.
func Leapfrog(
	target density.Target, s State, momentum, stepSize *graph.Node, tuning Tuning,
) (State, *graph.Node) {
	h := stepSize
	if h.Rank() == 1 {
		h = ExpandAxes(h, 1)
	}
	if h.Rank() == 2 {
		h = BroadcastToShape(h, momentum.Shape())
	}
	half := MulScalar(h, 0.5)
	momentum = Add(momentum, Mul(half, tuning.Scaled(s.Gradient)))
	s.Phi = Add(s.Phi, Mul(h, tuning.Scaled(momentum)))
	s.LogDensity, s.Gradient = Evaluate(target, s.Phi)
	return s, Add(momentum, Mul(half, tuning.Scaled(s.Gradient)))
}

// Kinetic is the kinetic energy of a momentum, [J, D], in the units of Leapfrog: half its squared length, [J].
func Kinetic(momentum *graph.Node) *graph.Node {
	return MulScalar(compute.RowSums(Square(momentum)), 0.5)
}

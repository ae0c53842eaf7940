package mcmc

import (
	"cmp"
	"fmt"

	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
)

var _ Stateful = SGLD{}

// SGLD is stochastic gradient Langevin dynamics (Welling and Teh 2011, eq. 4):
//
//	phi' = phi + (e_t/2) S^2 G(phi) + sqrt(e_t) S z
//
// where e_t is the step size of move t, S has the scales of the coordinates and z is standard normal. G is the gradient
// of the log-posterior estimated from a mini-batch of n of the N rows, with the log-likelihood scaled by N/n, as by
// density.MiniBatch. Step sizes e_t = a (b + t)^-c, 0.5 < c <= 1, fall to 0, and in this limit the target is left
// invariant. The gradient's noise has a variance proportional to e_t^2, which becomes small beside the variance of the
// noise z, proportional to e_t. With a constant e the target is not invariant; the bias grows with e and with the
// variance of G. A move costs one gradient; nothing is accepted or rejected.
//
// If the gradient at phi is not finite, the move that led there is undone, in that particle alone, and counted.
type SGLD struct {
	StepSize float64 `json:"step_size"` // a, a variance: ULA's step size squared; must be set
	Offset   float64 `json:"offset"`    // b; default 1
	Decay    float64 `json:"decay"`     // c; default 0: the step size is constant, a
}

// Traits implements Kernel.
func (k SGLD) Traits() Traits { return Traits{} }

// Check implements Kernel.
func (k SGLD) Check(int) error {
	if err := positive("SGLD.StepSize", k.StepSize); err != nil {
		return err
	}
	if err := nonNegative("SGLD.Offset", zeroDefault, k.Offset); err != nil {
		return err
	}
	if !(k.Decay >= 0 && k.Decay <= 1) {
		return fmt.Errorf("mcmc: SGLD.Decay is %v: it must be from 0 (a constant step size) to 1", k.Decay)
	}
	return nil
}

// moved is the name of a particle's number of moves, t, in State.Auxiliary: [J].
const moved = "moved"

// Start implements Stateful.
func (k SGLD) Start(_ random.Stream, s State) State {
	s = startSafe(s)
	s.Auxiliary[moved] = Zeros(s.Phi.Graph(), s.PerParticle())
	return s
}

// Move implements Kernel.
func (k SGLD) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	e := BroadcastToShape(ConstAs(s.Phi, k.StepSize), s.PerParticle())
	if k.Decay > 0 {
		e = MulScalar(Pow(AddScalar(s.Auxiliary[moved], cmp.Or(k.Offset, 1)), ConstAs(s.Phi, -k.Decay)), k.StepSize)
	}
	z := normal(rng, s.Phi)
	next, info := moveSafely(rng, s, target, func(gradient *Node) *Node {
		drift := Mul(tuning.Scaled(tuning.Scaled(gradient)), overCoordinates(MulScalar(e, 0.5), z))
		return Add(s.Phi, Add(drift, Mul(tuning.Scaled(z), overCoordinates(Sqrt(e), z))))
	})
	next.Auxiliary[moved] = AddScalar(s.Auxiliary[moved], 1)
	return next, info
}

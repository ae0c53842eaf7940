package mcmc

import (
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
)

var _ Stateful = ULA{}

// ULA is the unadjusted Langevin algorithm (Roberts and Tweedie 1996; Durmus and Moulines 2017):
//
//	phi' = phi + (h^2/2) S^2 grad log p(phi) + h S z
//
// MALA without the accept/reject step. It leaves the target invariant only in the limit of small steps: on a Gaussian
// of standard deviation s its stationary variance is s^2 / (1 - h^2/(4 s^2)), and for h >= 2s there is no stationary
// distribution. A move costs one gradient, and carries neither gradient nor log-density, so that the target may change
// from move to move; SGLD is the same algorithm with decaying step sizes.
//
// If the gradient at phi is not finite, the move that led there is undone, in that particle alone, and counted.
type ULA struct {
	StepSize float64 `json:"step_size"` // h, standard deviation of the noise; must be set
}

// Traits implements Kernel.
func (k ULA) Traits() Traits { return Traits{} }

// Check implements Kernel.
func (k ULA) Check(int) error { return positive("ULA.StepSize", k.StepSize) }

// Start implements Stateful.
func (k ULA) Start(_ random.Stream, s State) State { return startSafe(s) }

// Move implements Kernel.
func (k ULA) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	h := ConstAs(s.Phi, k.StepSize)
	z := normal(rng, s.Phi)
	return moveSafely(rng, s, target, func(gradient *Node) *Node {
		drift := MulScalar(tuning.Scaled(tuning.Scaled(gradient)), k.StepSize*k.StepSize/2)
		return Add(s.Phi, Add(drift, Mul(h, tuning.Scaled(z))))
	})
}

// Kernels without an accept/reject step notice a gradient that is not finite only after they have moved to that point.
// They carry the last point with a finite gradient, to return to it.
const safePlace = "safe"

// startSafe begins with phi as the place to return to.
func startSafe(s State) State {
	s.Auxiliary = map[string]*Node{safePlace: s.Phi}
	return s
}

// moveSafely evaluates the gradient at phi and makes the step, [J, D] to the new phi, but returns to the safe place if
// the gradient is not finite, and stays if the step is not.
func moveSafely(rng random.Stream, s State, target density.Target, step func(gradient *Node) *Node) (State, Info) {
	logDensity, gradient := Evaluate(density.ByMiniBatch(rng, target), s.Phi)
	usable := IsFinite(logDensity)
	proposal := step(gradient)
	arrives := compute.RowsAll(IsFinite(proposal), proposal.DType())
	safe := Choose(usable, s.Phi, s.Auxiliary[safePlace])
	moves := And(usable, arrives)

	next := State{Phi: Choose(moves, proposal, safe), Auxiliary: map[string]*Node{safePlace: safe}}
	return next, Info{
		NonFinite: ConvertDType(Not(moves), s.Phi.DType()),
		Length:    OnesLike(logDensity),
	}
}

// positive is for step sizes that no warm-up can choose.
func positive(name string, v float64) error {
	if !(v > 0) || math.IsInf(v, 1) {
		return fmt.Errorf("mcmc: %s is %v: it must be positive and finite; no warm-up chooses it, since without accepting "+
			"and rejecting nothing says what is too large", name, v)
	}
	return nil
}

package mcmc

import (
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	. "github.com/gomlx/gomlx/core/graph"
)

var _ Stateful = ULA{}

// ULA is the unadjusted Langevin algorithm (Roberts and Tweedie 1996; Durmus and Moulines 2017):
//
//	phi' = phi + (h^2/2) S^2 grad log p(phi) + h S z
//
// MALA without its test: every step is taken. It leaves the target invariant only in the limit of small steps: on a
// Gaussian of standard deviation s its stationary variance is s^2 / (1 - h^2/(4 s^2)), and beyond h = 2s it has none. A
// move costs one gradient, and carries neither gradient nor log-density along, so the target may change from move to
// move; SGLD is the same with the step sizes of its field.
//
// If the gradient at phi is not finite, the move that led there is undone, in that particle alone, and counted.
type ULA struct {
	StepSize float64 `json:"step_size"` // h, standard deviation of the noise; must be set
}

// Carries implements Kernel: nothing.
func (k ULA) Carries() Carries { return CarriesNothing }

// UsesTarget implements Kernel.
func (k ULA) UsesTarget() bool { return true }

// Check implements Kernel.
func (k ULA) Check(int) error { return positive("ULA.StepSize", k.StepSize) }

// Start implements Stateful.
func (k ULA) Start(_ random.Stream, s State) State { return startSafe(s) }

// Move implements Kernel.
func (k ULA) Move(rng random.Stream, s State, target Target, tuning Tuning) (State, Info) {
	h := ConstAs(s.Phi, k.StepSize)
	z := normal(rng, s.Phi)
	return moveSafely(rng, s, target, func(gradient *Node) *Node {
		drift := MulScalar(tuning.Scaled(tuning.Scaled(gradient)), k.StepSize*k.StepSize/2)
		return Add(s.Phi, Add(drift, Mul(h, tuning.Scaled(z))))
	})
}

// Kernels that take every step meet a gradient that is not finite only after they have come to where it is. They carry
// the last place where it was finite, to go back there.
const safePlace = "safe"

// startSafe begins with phi as the place to go back to.
func startSafe(s State) State {
	s.Own = map[string]*Node{safePlace: s.Phi}
	return s
}

// moveSafely evaluates the gradient at phi and takes the step that it gives, [J, D] to the new phi, but goes back to
// the safe place where the gradient is not finite, and stays where the step is not.
func moveSafely(rng random.Stream, s State, target Target, step func(gradient *Node) *Node) (State, Info) {
	logDensity, gradient := evaluate(ByMiniBatch(rng, target), s.Phi)
	usable := IsFinite(logDensity)
	proposal := step(gradient)
	arrives := compute.RowsAll(IsFinite(proposal), proposal.DType())
	safe := Choose(usable, s.Phi, s.Own[safePlace])
	moves := And(usable, arrives)

	next := State{Phi: Choose(moves, proposal, safe), Own: map[string]*Node{safePlace: safe}}
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

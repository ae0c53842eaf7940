package mcmc

import (
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
)

var _ Tunable = MALA{}

// MALA is the Metropolis-adjusted Langevin algorithm (Roberts and Tweedie 1996): a step of the discretised Langevin
// diffusion,
//
//	phi' = phi + (h^2/2) S^2 grad log p(phi) + h S z
//
// with h the step size, S the scales of the coordinates and z standard normal. Each particle accepts for itself, with
// probability min(1, p(phi') q(phi | phi') / (p(phi) q(phi' | phi))). It leaves the target invariant. A proposal whose
// log-density or gradient is not finite is rejected and counted. A move costs one gradient: the one at phi is carried
// in the State.
type MALA struct {
	StepSize float64 `json:"step_size"` // h, standard deviation of the noise; 0: a warm-up chooses
}

// Traits implements Kernel.
func (k MALA) Traits() Traits { return Traits{Carries: CarriesGradient, Exact: true, Reversible: true} }

// Check implements Kernel.
func (k MALA) Check(int) error { return checkStep("MALA", k.StepSize) }

// Tune implements Tunable: 0.574 is best in many dimensions (Roberts and Rosenthal 1998).
func (k MALA) Tune() (stepSize, acceptance float64) { return k.StepSize, 0.574 }

// Move implements Kernel. The proposal is one leapfrog step with momentum z, which ends with the momentum -z' where z'
// is the noise that would lead back; so log q(phi | phi') - log q(phi' | phi) is the kinetic energy lost (Neal 2011,
// section 5.2).
func (k MALA) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	z := normal(rng.Named("proposal"), s.Phi)
	proposal, back := Leapfrog(target, s, z, tuning.Step(s.Phi, k.StepSize), tuning)
	logRatio := Add(Sub(proposal.LogDensity, s.LogDensity), Sub(Kinetic(z), Kinetic(back)))
	return MetropolisHastings(rng, s, proposal, logRatio)
}

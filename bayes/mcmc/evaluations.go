package mcmc

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// Evaluations counts what was evaluated; in a Details, by the transitions after the warm-up. The full counts are
// evaluations of the target on all data, the partial ones those of a cheaper target, such as a surrogate or
// mini-batches (Problem.BatchShare). A number that a kernel does not report is 0.
type Evaluations struct {
	Full             int // log-densities of the target, without a gradient
	FullGradients    int // gradients of the target, with its log-density
	Partial          int // log-densities of the cheap target
	PartialGradients int // gradients of the cheap target
	// PartialShare is the cost of an evaluation of the cheap target relative to one of the target, in the mean if there
	// are several; 0: unknown.
	PartialShare float64
}

// gradientForwards is the cost of a gradient in reverse mode: the forward pass, and twice as much backwards.
const gradientForwards = 3

// Forwards is the cost in full forward passes: 1 for a log-density of the target, 3 for a gradient, and in proportion
// for the cheap target.
func (e Evaluations) Forwards() float64 {
	return float64(e.Full+gradientForwards*e.FullGradients) + e.PartialShare*e.partial()
}

// partial is the cost of the cheap target's evaluations, in its forward passes.
func (e Evaluations) partial() float64 {
	return float64(e.Partial + gradientForwards*e.PartialGradients)
}

// plus adds the counts of b. If both have a cheap target, PartialShare becomes the mean share over the evaluations of
// both, so that Forwards is the sum.
func (e Evaluations) plus(b Evaluations) Evaluations {
	switch own, other := e.partial(), b.partial(); {
	case own == 0:
		e.PartialShare = b.PartialShare
	case other > 0 && b.PartialShare != e.PartialShare:
		e.PartialShare = (own*e.PartialShare + other*b.PartialShare) / (own + other)
	}
	e.Full, e.FullGradients = e.Full+b.Full, e.FullGradients+b.FullGradients
	e.Partial, e.PartialGradients = e.Partial+b.Partial, e.PartialGradients+b.PartialGradients
	return e
}

// ofMiniBatches counts all evaluations as partial, for a target that evaluates only a share of the rows at a time.
func (e Evaluations) ofMiniBatches(share float64) Evaluations {
	return Evaluations{
		Partial: e.Full + e.Partial, PartialGradients: e.FullGradients + e.PartialGradients, PartialShare: share,
	}
}

// costs is a kernel that knows the cost of its partial evaluations, as Evaluations.PartialShare.
type costs interface{ PartialShare() float64 }

// evaluated returns the numbers of gradients and log-densities of the target that a kernel's transition took, [J] each.
// They come from info where the transition is complete; s is any of the kernel's states.
func evaluated(kernel Kernel, info Info, s State) (gradients, logDensities *Node) {
	none := Zeros(s.Phi.Graph(), s.PerParticle())
	gradients, logDensities = none, none
	switch {
	case kernel.Traits().Carries == CarriesGradient && info.Length != nil:
		gradients = info.Length
	case kernel.Traits().Carries == CarriesGradient && info.Complete == nil:
		gradients = OnesLike(none)
	}
	switch {
	case info.Full != nil:
		logDensities = info.Full
	case kernel.Traits().Carries == CarriesLogDensity && info.Complete == nil:
		logDensities = OnesLike(none)
	}
	return gradients, logDensities
}

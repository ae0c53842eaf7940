// Package kerneltest has the faults of a user's own kernel, for the tests of the samplers that look for them. A test
// embeds Changed in a type of its own, since kernels of the library's packages are taken to be right (see
// tryout.Foreign).
package kerneltest

import (
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
)

// Changed makes the moves of another kernel, and then a Change.
type Changed struct {
	mcmc.Kernel
	Change Change
}

// Change changes the state after a move, or what the move reports, given the state before it.
type Change func(before, next *mcmc.State, info *mcmc.Info)

// Move implements mcmc.Kernel.
func (c Changed) Move(
	rng random.Stream, s mcmc.State, target density.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	before := s
	next, info := c.Kernel.Move(rng, s, target, tuning)
	c.Change(&before, &next, &info)
	return next, info
}

// Start implements mcmc.Stateful.
func (c Changed) Start(rng random.Stream, s mcmc.State, target density.Target) mcmc.State {
	if k, ok := c.Kernel.(mcmc.Stateful); ok {
		return k.Start(rng, s, target)
	}
	return s
}

// Traits implements mcmc.Kernel: those of the other kernel, declared exact.
func (c Changed) Traits() mcmc.Traits {
	of := c.Kernel.Traits()
	of.Exact, of.Reversible = true, true
	return of
}

// MarshalJSON leaves the Change out, which JSON cannot hold.
func (Changed) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

// Same changes nothing.
func Same(_, _ *mcmc.State, _ *mcmc.Info) {}

// StaleDensity keeps the log-density of the place before the move.
func StaleDensity(before, next *mcmc.State, _ *mcmc.Info) { next.LogDensity = before.LogDensity }

// StaleGradient keeps the gradient of the place before the move.
func StaleGradient(before, next *mcmc.State, _ *mcmc.Info) { next.Gradient = before.Gradient }

// DensityOfRejected lowers the log-density by 1 where the proposal is rejected, as a kernel does that carries the
// proposal's there.
func DensityOfRejected(_, next *mcmc.State, info *mcmc.Info) {
	next.LogDensity = graph.Sub(next.LogDensity, graph.OneMinus(info.Accepted))
}

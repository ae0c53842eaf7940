package mcmc

import (
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/tryout"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// A kernel of a user's own accepts or rejects by the values that it carries. If they belong to another point than phi,
// such as the point before an accepted move, nothing fails but all draws are wrong. So after 1, 2, 4, 8, ... moves the
// carried values are compared with the target at phi, which costs next to nothing. Samplers of package smc do so too.

// ownMoves returns the user's own kernel that moves the chains: the kernel itself, or Inner of DelayedAcceptance. It is
// nil if a kernel of the library moves them.
func ownMoves(kernel Kernel) Kernel {
	if k, ok := kernel.(DelayedAcceptance); ok {
		kernel = k.Inner
	}
	if tryout.Foreign(kernel) {
		return kernel
	}
	return nil
}

// ComparesCarried says whether a user's own kernel moves the particles and carries values of the target, so that these
// are worth comparing with the target now and then.
func (c *Carrier) ComparesCarried() bool {
	return ownMoves(c.kernel) != nil && !c.kernel.Traits().NoTarget && c.kernel.Traits().Carries != CarriesNothing
}

// Carried compares what the kernel carries with the target at phi; within DelayedAcceptance with the cheap target. It
// costs one evaluation of the target.
func (c *Carrier) Carried(t *tryout.Trial, nodes compute.Nodes, target density.Target) {
	s := c.unpack(nodes)
	if k, ok := c.kernel.(DelayedAcceptance); ok {
		s, target = k.onCheap(s), cheapOf(target)
	}
	var density, gradient *Node
	if s.Gradient != nil {
		density, gradient = Evaluate(target, s.Phi)
	} else {
		density = logDensityOf(target, s.Phi)
	}
	t.Carried(ownMoves(c.kernel), density, s.LogDensity, gradient, s.Gradient)
}

// RepeatedDraws is a warning for a user's own kernel that draws more than once from one random stream within a move,
// which gives the same numbers again: a wrong name, unless it is meant. It is empty if the kernel does not, or if its
// target draws mini-batches.
func (c *Carrier) RepeatedDraws() string {
	if c.drawn == "" {
		return ""
	}
	return fmt.Sprintf("Move of %T draws more than once from one random stream, which gives the same numbers again (%s): "+
		"unless this is meant the draws are wrong; give each its own name by rng.Named, and what is meant to be the same "+
		"draw once", ownMoves(c.kernel), c.drawn)
}

// carriedStep is Carried for the chains' target.
func (m *moves) carriedStep(nodes compute.Nodes, _ []*graph.Node) (compute.Nodes, *graph.Node) {
	m.compared = tryout.Trial{}
	m.carrier.Carried(&m.compared, nodes, m.target(nodes, nil))
	return nil, m.compared.Numbers()
}

// checkMove returns an error if a user's own kernel reports an acceptance that is no probability. After 1, 2, 4, ...
// moves it also checks the carried values. An acceptance of NaN passes: it comes from a proposal that is
// NaN.
func (r *sampling) checkMove(t moveRecord) error {
	own := ownMoves(r.Kernel)
	if own == nil {
		return nil
	}
	for chain := range r.Chains.Chains {
		if a := t.of(infoAcceptance, chain, 0); t.of(infoComplete, chain, 1) != 0 && (a < 0 || a > 1.001) {
			return fmt.Errorf("mcmc: move %d: %T reports an Info.Acceptance of %v for chain %d: it must be a probability, from "+
				"0 to 1, such as exp(min(0, log-ratio)), or the warm-up's step sizes are wrong", r.Move, own, a, chain)
		}
	}
	made := r.Move + 1
	if r.carried == nil || made&(made-1) != 0 { // not a power of 2
		return nil
	}
	counts, err := r.carried.Run(r.state)
	if err != nil {
		return fmt.Errorf("mcmc: move %d: %w", r.Move, err)
	}
	if err := r.compared.Check(counts); err != nil {
		return fmt.Errorf("mcmc: after %d moves %w", made, err)
	}
	return nil
}

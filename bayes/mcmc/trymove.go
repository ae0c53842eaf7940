package mcmc

import (
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/tryout"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// A kernel of a user's own accepts or rejects by the values that it carries. If these are of another place than phi,
// such as that of before an accepted move, nothing fails but all draws are wrong. So what it carries is compared with
// the target at phi after 1, 2, 4, 8, ... moves, which costs next to nothing. Samplers of package smc do so too.

// ownMoves is a user's own kernel that moves the chains: the kernel, or that within DelayedAcceptance. It is nil if the
// library's own does.
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
// are worth comparing with the target now and then, by Carried and CheckCarried.
func (c *Carrier) ComparesCarried() bool {
	return ownMoves(c.kernel) != nil && c.kernel.UsesTarget() && c.kernel.Carries() != CarriesNothing
}

// Carried compares what the kernel carries with the target at phi: the numbers, for CheckCarried, of particles whose
// log-density is finite, and of those that carry another log-density, or another gradient, than the target gives.
// Within DelayedAcceptance the values are those of the cheap target. It costs one evaluation of the target.
func (c *Carrier) Carried(nodes compute.Nodes, target density.Target) *graph.Node {
	s := c.Unpack(nodes)
	if k, ok := c.kernel.(DelayedAcceptance); ok {
		s, target = k.onCheap(s), k.cheap(target)
	}
	var density, gradient *Node
	if s.Gradient != nil {
		density, gradient = Evaluate(target, s.Phi)
	} else {
		density = compute.Gate(target.LogDensity(s.Phi))
	}
	return tryout.Carried(density, s.LogDensity, gradient, s.Gradient)
}

// CheckCarried is an error if many particles carry, by the counts of Carried, another log-density or gradient than that
// of the place to which so many moves have led.
func (c *Carrier) CheckCarried(counts []float64, moves int) error {
	of := counts[0]
	for i, other := range counts[1:] {
		if what := []string{"LogDensity", "Gradient"}[i]; tryout.Stale(other, of) {
			return fmt.Errorf("after %d moves the State.%s of %.0f of %.0f chains is not that of State.Phi: Move of %T "+
				"must carry the proposal's where it accepts, and keep the present one where it rejects, as "+
				"mcmc.MetropolisHastings does", moves, what, other, of, ownMoves(c.kernel))
		}
	}
	return nil
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
	return nil, m.carrier.Carried(nodes, m.target(nodes, nil))
}

// checkMove is an error if a kernel of a user's own reports an acceptance that is no probability, or if it is time to
// compare what it carries with the target, and that is of another place. NaN is the acceptance of a proposal that is.
func (r *sampling) checkMove(t moveRecord) error {
	own := ownMoves(r.kernel)
	if own == nil {
		return nil
	}
	for chain := range r.Chains {
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
	if err := r.carrier.CheckCarried(counts, made); err != nil {
		return fmt.Errorf("mcmc: %w", err)
	}
	return nil
}

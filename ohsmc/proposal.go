package ohsmc

import (
	"cmp"
	"fmt"

	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Proposal moves particles for Guided: it draws phi' from a density q(. | phi), and has a backward kernel L(phi |
// phi'). There is no accept/reject step: instead the weight is multiplied by L(phi | phi') / q(phi' | phi), besides the
// ratio of the targets. The weights are right with any L that is a density in phi (Del Moral, Doucet and Jasra 2006,
// section 3.3). Their variance is the smaller, the closer L is to the time-reversal of q. Propose builds graph, and
// panics as GoMLX does.
//
// A particle's phi' and LogRatio may depend only on its own phi and on its own row of random numbers. Before a run,
// Guided tries a proposal of your own on a small posterior that is known, and returns an error if LogRatio does not fit
// what Propose draws. This trial may miss a fault where the weights are very unequal, as with steps much longer than
// the posterior is wide.
type Proposal interface {
	// NeedsGradient says whether Propose needs the target's log-density and gradient at the particles.
	NeedsGradient() bool
	// Check returns an error that names a setting that is wrong.
	Check() error
	// Propose draws phi', [J, D], given particles at `from`. stepSize is a scalar.
	Propose(rng random.Stream, from mcmc.State, density density.Target, stepSize *graph.Node) Proposed
}

// Proposed holds the particles after a Proposal.
type Proposed struct {
	Phi *graph.Node // [J, D]
	// LogRatio is log L(phi | phi') - log q(phi' | phi); nil stands for 0. Particles may be evaluated in chunks:
	// LogRatio gets a chunk of c particles and returns [c]. of.Of takes the rows of a [J, ...] node that belong to the
	// chunk. gradient is the gradient of the log-target at the chunk's Phi, [c, D], or nil without NeedsGradient.
	LogRatio func(of density.Evaluated, gradient *graph.Node) *graph.Node
	// NeedsGradient says whether LogRatio needs the gradient.
	NeedsGradient bool
	// Lost, bool [J], is true for particles that have met a gradient that is not finite on the way from their start to
	// Phi: they get weight 0. nil stands for none. Guided itself checks the gradients at the start and at the end.
	Lost *graph.Node
}

var (
	_ Proposal = RandomWalk{}
	_ Proposal = Langevin{}
	_ Proposal = HMC{}
)

// RandomWalk proposes phi' = phi + h z, z standard normal. The backward kernel L is the same random walk, so L/q is 1.
// The weights are right, but may have infinite variance: for a fixed target pi, the factors of T steps without
// resampling multiply to pi(phi_T)/pi(phi_0). For a Gaussian target of variance sigma^2 this has a finite variance only
// if T h^2 < sigma^2/2, that is if the variances of the steps add up to less than half the target's. Use small steps,
// or resample often.
type RandomWalk struct{}

// NeedsGradient implements Proposal.
func (RandomWalk) NeedsGradient() bool { return false }

// Check implements Proposal.
func (RandomWalk) Check() error { return nil }

// Propose implements Proposal.
func (RandomWalk) Propose(rng random.Stream, from mcmc.State, _ density.Target, stepSize *graph.Node) Proposed {
	return Proposed{Phi: Add(from.Phi, Mul(momentum(rng, from), stepSize))}
}

// Langevin proposes phi' = phi + (h^2/2) grad log pi(phi) + h P with P ~ N(0, I): one step of the unadjusted Langevin
// dynamics, toward the target pi of the current batch (Millard et al. 2025, section 2.1.1).
//
// It has two backward kernels. The default has the density of the same Langevin step from phi' back to phi. It is N(P';
// 0, I) with the momentum at the end of a whole leapfrog step, P' = P* + (h/2) grad log pi(phi'), where P* = P + (h/2)
// grad log pi(phi). For a fixed target the log-weights then change only by the integrator's energy error, O(h^3) a
// step.
//
// PaperForm takes the paper's N(-P*; 0, I), without the gradient at phi'. Since P* = (phi' - phi)/h, this is the
// density of a random walk from phi' back to phi. It is a valid backward kernel, but ignores the drift, so that the
// log-weights change by O(h) a step. It saves the second gradient that the default takes.
type Langevin struct {
	PaperForm bool `json:"paper_form,omitempty"` // the paper's backward kernel
}

// NeedsGradient implements Proposal.
func (Langevin) NeedsGradient() bool { return true }

// Check implements Proposal.
func (Langevin) Check() error { return nil }

// Propose implements Proposal.
func (l Langevin) Propose(rng random.Stream, from mcmc.State, _ density.Target, stepSize *graph.Node) Proposed {
	p := momentum(rng, from)
	phi, half := drift(from, p, stepSize)
	if l.PaperForm {
		return Proposed{Phi: phi, LogRatio: func(of density.Evaluated, _ *Node) *Node {
			return Sub(mcmc.Kinetic(of.Of(p)), mcmc.Kinetic(of.Of(half)))
		}}
	}
	return Proposed{Phi: phi, LogRatio: energyRatio(p, half, stepSize), NeedsGradient: true}
}

// HMC proposes the end of a Hamiltonian trajectory of several leapfrog steps of size h, begun with a momentum P ~ N(0,
// I). The backward kernel is the same trajectory with the momentum reversed. Since leapfrog steps preserve volume and
// are reversible, L/q = N(P_end; 0, I) / N(P; 0, I). With one step it is Langevin with its default backward kernel. It
// costs Steps + 1 gradients.
type HMC struct {
	Steps int `json:"steps"` // leapfrog steps, from 1 to 50; default 5
}

// NeedsGradient implements Proposal.
func (HMC) NeedsGradient() bool { return true }

// maxLeapfrogs bounds the size of the graph, which has every step.
const maxLeapfrogs = 50

// Check implements Proposal.
func (h HMC) Check() error {
	if h.Steps < 0 || h.Steps > maxLeapfrogs {
		return fmt.Errorf("ohsmc: HMC.Steps is %d: it must be from 1 to %d (0 takes the default, 5)", h.Steps, maxLeapfrogs)
	}
	return nil
}

// Propose implements Proposal.
func (h HMC) Propose(rng random.Stream, from mcmc.State, density density.Target, stepSize *graph.Node) Proposed {
	p := momentum(rng, from)
	at, now := from, p
	var lost *Node
	for range cmp.Or(h.Steps, 5) - 1 {
		at, now = mcmc.Leapfrog(density, at, now, stepSize, mcmc.Tuning{})
		if lost == nil {
			lost = Not(IsFinite(at.LogDensity))
		} else {
			lost = Or(lost, Not(IsFinite(at.LogDensity)))
		}
	}
	phi, half := drift(at, now, stepSize)
	return Proposed{Phi: phi, LogRatio: energyRatio(p, half, stepSize), NeedsGradient: true, Lost: lost}
}

// drift is a leapfrog step up to the new position: it returns that position and the momentum in the middle of the step.
// The last half step of the momentum needs the gradient at the new position, which comes with the weighing
// (energyRatio).
func drift(from mcmc.State, p, stepSize *Node) (phi, half *Node) {
	half = Add(p, Mul(from.Gradient, MulScalar(stepSize, 0.5)))
	return Add(from.Phi, Mul(half, stepSize)), half
}

// energyRatio is log N(p_end; 0, I) - log N(p; 0, I), where p_end is half after the last half step by the gradient at
// the end.
func energyRatio(p, half, stepSize *Node) func(of density.Evaluated, gradient *Node) *Node {
	return func(of density.Evaluated, gradient *Node) *Node {
		end := Add(of.Of(half), Mul(gradient, MulScalar(stepSize, 0.5)))
		return Sub(mcmc.Kinetic(of.Of(p)), mcmc.Kinetic(end))
	}
}

func momentum(rng random.Stream, from mcmc.State) *Node {
	return rng.Normal(from.Phi.DType(), from.Phi.Shape().Dimensions...)
}

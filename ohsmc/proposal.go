package ohsmc

import (
	"fmt"

	"gobnn/bayes/compute/random"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/target"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Proposal moves particles for Guided: it draws phi' from q(. | phi) and has a backward kernel L(phi | phi'). The
// weights are right with any L that is a density in phi (Del Moral, Doucet and Jasra 2006, section 3.3); the closer it
// is to the time-reversal of q, the smaller their variance. It needs no accept/reject step. Propose builds graph, and
// panics as GoMLX does.
//
// A particle's phi' and LogRatio are by its own phi and its own row of random numbers; what all particles have in
// common comes as scale. Guided tries a proposal of your own on a small posterior that is known, and refuses one that
// contradicts itself; it says nothing of weights that are very unequal there, as of steps much longer than the
// posterior is wide.
type Proposal interface {
	// NeedsGradient says whether Propose needs the target's log-density and gradient at the particles.
	NeedsGradient() bool
	// Check returns an error that names a setting that is wrong.
	Check() error
	// Propose draws phi' given particles at `from`. stepSize is a scalar, in units of scale, [D] or nil (1).
	Propose(rng random.Stream, from mcmc.State, density mcmc.Target, stepSize, scale *graph.Node) Proposed
}

// Proposed are the particles after a Proposal.
type Proposed struct {
	Phi *graph.Node // [J, D]
	// LogRatio is log L(phi | phi') - log q(phi' | phi) of the c particles that are evaluated, [c], given the
	// gradient of the log-target at their Phi, [c, D]; nil: 0.
	LogRatio func(of target.Evaluated, gradient *graph.Node) *graph.Node
	// NeedsGradient says whether LogRatio needs that gradient.
	NeedsGradient bool
	// Lost, bool [J], is true for each particle with a gradient that was not finite between its start and Phi, which gets
	// weight 0; nil: none. Guided itself checks the gradients at the start and the end.
	Lost *graph.Node
}

var (
	_ Proposal = RandomWalk{}
	_ Proposal = Langevin{}
	_ Proposal = HMC{}
)

// RandomWalk proposes phi + h z, z standard normal. The backward kernel is the same, and the ratio is 1. Its weights
// are right but may have infinite variance: between two resamplings they grow to pi(phi_t)/pi(phi_0). For a Gaussian
// target this ratio has a finite variance only while the variances of the T steps add up to less than half the
// target's, T h^2 < sigma^2/2. Use small steps, or resample often.
type RandomWalk struct{}

// NeedsGradient implements Proposal.
func (RandomWalk) NeedsGradient() bool { return false }

// Check implements Proposal.
func (RandomWalk) Check() error { return nil }

// Propose implements Proposal.
func (RandomWalk) Propose(
	rng random.Stream, from mcmc.State, _ mcmc.Target, stepSize, scale *graph.Node,
) Proposed {
	return Proposed{Phi: Add(from.Phi, Mul(mcmc.Tuning{Scale: scale}.Scaled(momentum(rng, from)), stepSize))}
}

// Langevin proposes phi + (h^2/2) grad log pi(phi) + h P with P ~ N(0, I): one step of the unadjusted Langevin
// dynamics, toward the target of the current batch (Millard et al. 2025, section 2.1.1).
//
// The paper takes P* = P + (h/2) grad log pi(phi) for the momentum at the end, and N(-P*; 0, I) for the backward
// kernel. Since P* = (phi' - phi)/h, this is the random walk's density from phi' back to phi: a valid backward kernel,
// which ignores the gradient. The default is the exact form: it takes the momentum at the end of the whole leapfrog
// step, P* + (h/2) grad log pi(phi'), and its density is that of the same Langevin step started at phi'. The weights
// then vary only by the integrator's energy error, O(h^3) for a step; with the paper's form they lose what the drift
// gained. The exact form costs a second gradient.
type Langevin struct {
	PaperForm bool `json:"paper_form,omitempty"` // the paper's backward kernel
}

// NeedsGradient implements Proposal.
func (Langevin) NeedsGradient() bool { return true }

// Check implements Proposal.
func (Langevin) Check() error { return nil }

// Propose implements Proposal.
func (l Langevin) Propose(
	rng random.Stream, from mcmc.State, _ mcmc.Target, stepSize, scale *graph.Node,
) Proposed {
	p := momentum(rng, from)
	phi, half := drift(from, p, stepSize, scale)
	if l.PaperForm {
		return Proposed{Phi: phi, LogRatio: func(of target.Evaluated, _ *Node) *Node {
			return Sub(mcmc.Kinetic(of.Of(p)), mcmc.Kinetic(of.Of(half)))
		}}
	}
	return Proposed{Phi: phi, LogRatio: energyRatio(p, half, stepSize, scale), NeedsGradient: true}
}

// HMC proposes the end of a Hamiltonian trajectory of several leapfrog steps, begun with a momentum P ~ N(0, I). The
// map preserves volume and is its own inverse up to the momentum's sign, so the backward kernel has the density of the
// momentum at the end, and the ratio is N(P_end; 0, I) / N(P; 0, I). With one step it is the exact Langevin. It costs
// Steps + 1 gradients.
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
func (h HMC) Propose(
	rng random.Stream, from mcmc.State, density mcmc.Target, stepSize, scale *graph.Node,
) Proposed {
	steps := h.Steps
	if steps == 0 {
		steps = 5
	}
	p := momentum(rng, from)
	at, now := from, p
	var lost *Node
	for range steps - 1 {
		at, now = mcmc.Leapfrog(density, at, now, stepSize, scale)
		if lost == nil {
			lost = Not(IsFinite(at.LogDensity))
		} else {
			lost = Or(lost, Not(IsFinite(at.LogDensity)))
		}
	}
	phi, half := drift(at, now, stepSize, scale)
	return Proposed{Phi: phi, LogRatio: energyRatio(p, half, stepSize, scale), NeedsGradient: true, Lost: lost}
}

// drift is a leapfrog step without its last half step of the momentum: it returns the new position and the momentum in
// the middle of the step.
func drift(from mcmc.State, p, stepSize, scale *Node) (phi, half *Node) {
	scaled := mcmc.Tuning{Scale: scale}.Scaled
	half = Add(p, Mul(scaled(from.Gradient), MulScalar(stepSize, 0.5)))
	return Add(from.Phi, Mul(scaled(half), stepSize)), half
}

// energyRatio is log N(p_end; 0, I) - log N(p; 0, I), where p_end is half after the last half step by the gradient at
// the end.
func energyRatio(p, half, stepSize, scale *Node) func(of target.Evaluated, gradient *Node) *Node {
	return func(of target.Evaluated, gradient *Node) *Node {
		end := Add(of.Of(half), Mul(mcmc.Tuning{Scale: scale}.Scaled(gradient), MulScalar(stepSize, 0.5)))
		return Sub(mcmc.Kinetic(of.Of(p)), mcmc.Kinetic(end))
	}
}

func momentum(rng random.Stream, from mcmc.State) *Node {
	return rng.Normal(from.Phi.DType(), from.Phi.Shape().Dimensions...)
}

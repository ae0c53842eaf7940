package smc

import (
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/tryout"

	. "github.com/gomlx/gomlx/core/graph"
)

// Particles are weighed by one of a target's methods and moved by another. If these contradict each other nothing
// fails, but particles and log evidence belong to no distribution. So a user's own type of target is tried at draws
// from the prior, before the first step. A target made of a user's functions is tried for whether they keep particles
// apart. Surrogates, on which a kernel such as mcmc.DelayedAcceptance moves, are tried too.

const triedTarget = 64 // draws

// try is Spec.try: it tries the problem's target by the first particles, phi, [J, D], and then whether all of them, or
// as many draws as it takes, have the density of LogPrior.
func (m *machine) try(t *tryout.Trial, rng random.Stream, nodes compute.Nodes, phi *Node) {
	m.tryTarget(t, rng.Named("trial"), nodes, Slice(phi, AxisRange(0, min(triedTarget, m.Particles))))
	logPrior := m.factored(nodes).LogPrior
	switch draws, _ := tryout.DrawsToTry(m.problem.Dim); {
	case draws == 0 || m.folded: // cannot be tried
	case m.problem.Start != nil:
		every := (m.Particles + draws - 1) / draws // of all parts of Start, in case they lie in some order
		t.Draws("Problem.Start", Slice(phi, AxisRange().Stride(every)), logPrior)
	default:
		t.Draws("Problem.Initial", m.problem.Initial(rng.Named("tried"), m.DType, draws), logPrior)
	}
}

// tryTarget tries the problem's target, and its surrogates, at phi, [n, D].
func (m *machine) tryTarget(t *tryout.Trial, rng random.Stream, nodes compute.Nodes, phi *Node) {
	g, target := phi.Graph(), m.factored(nodes)
	t.Surrogates(rng, m.tempered(nodes, Scalar(g, m.DType, 1)), phi)
	foreign := tryout.Foreign(target)
	if !foreign && !madeOfFunctions(target) {
		return
	}
	name := fmt.Sprintf("target %T", target)
	prior, whole := target.LogPrior(phi), target.LogDensity(phi)
	t.Apart(rng, name, "LogPrior", target.LogPrior, phi, prior)
	t.Apart(rng, name, "LogDensity", target.LogDensity, phi, whole)
	if !foreign {
		return
	}
	likelihood := target.LogLikelihood(phi)
	t.Identity(name, "LogDensity", "LogPrior + LogLikelihood", whole, Add(prior, likelihood))
	for _, power := range []float64{0, .5, 1} {
		t.Identity(name, fmt.Sprintf("Tempered(%v)", power), fmt.Sprintf("LogPrior + %v LogLikelihood", power),
			target.Tempered(Scalar(g, m.DType, power)).LogDensity(phi), Add(prior, MulScalar(likelihood, power)))
	}
}

// madeOfFunctions madeOfFunctions says whether a target of the library's is one of a user's functions.
func madeOfFunctions(target density.Target) bool {
	switch target.(type) {
	case Posterior, *Posterior:
		return true
	}
	return false
}

package smc

import (
	"gobnn/bayes/density"

	"github.com/gomlx/gomlx/core/graph"
)

// Factored is a target with separate prior and likelihood, which Tempered needs. The posteriors of networks,
// of package density, are Factored; Posterior makes a Factored target from two functions.
type Factored interface {
	density.Target
	// LogPrior is log p(phi), [J] for phi, [J, D]. It is the density of what density.Problem.Initial draws, with its
	// constant: the evidence is relative to it.
	LogPrior(phi *graph.Node) *graph.Node
	// LogLikelihood is log p(y | phi), [J].
	LogLikelihood(phi *graph.Node) *graph.Node
	// Tempered is the target log p(phi) + power log p(y | phi), where power is a scalar of phi's type.
	Tempered(power *graph.Node) density.Target
}

// folded is a Factored target with a symmetry, such as the exchange of a network's units, which says so by a method
// that does nothing. Problem.Start need hold only one image of each draw: all images have the same LogPrior, likelihood
// and moves, so it does not matter at which image a particle is. Particles that begin there are not distributed as
// LogPrior, so Start is not tested against it.
type folded interface{ Folded() }

// Posterior is a Factored target given by two functions of phi, [J, D] to [J]; gradients are taken in reverse mode.
type Posterior struct {
	Prior      density.Func // log p(phi), with its constant
	Likelihood density.Func // log p(y | phi)
}

var _ Factored = Posterior{}

// LogDensity implements density.Target.
func (p Posterior) LogDensity(phi *graph.Node) *graph.Node {
	return graph.Add(p.Prior(phi), p.Likelihood(phi))
}

// Gradient implements density.Target.
func (p Posterior) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	return density.Func(p.LogDensity).Gradient(phi)
}

// LogPrior implements Factored.
func (p Posterior) LogPrior(phi *graph.Node) *graph.Node { return p.Prior(phi) }

// LogLikelihood implements Factored.
func (p Posterior) LogLikelihood(phi *graph.Node) *graph.Node { return p.Likelihood(phi) }

// Tempered implements Factored.
func (p Posterior) Tempered(power *graph.Node) density.Target {
	return density.Func(func(phi *graph.Node) *graph.Node {
		return graph.Add(p.Prior(phi), graph.Mul(power, p.Likelihood(phi)))
	})
}

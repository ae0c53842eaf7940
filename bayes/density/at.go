package density

import (
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// LogPosterior is a Conditional at fixed shared parameters and a fixed batch. It is a Target, for the kernels of
// package mcmc.
type LogPosterior struct {
	target Conditional
	psi    *Node // [W] or nil
	batch  Batch
}

// At fixes the shared parameters, [W] or nil, and the batch of a target.
func At(t Conditional, psi *graph.Node, batch Batch) LogPosterior { return LogPosterior{t, psi, batch} }

// LogDensity is the log-posterior of phi, [J, D] to [J].
func (p LogPosterior) LogDensity(phi *graph.Node) *graph.Node {
	return p.target.LogPosterior(phi, p.psi, p.batch)
}

// Gradient is the log-posterior, [J], and its gradient, [J, D].
func (p LogPosterior) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	return p.target.Gradient(phi, p.psi, p.batch)
}

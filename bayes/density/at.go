package density

import (
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// ofBatch is a Posterior at fixed shared parameters and a fixed batch.
type ofBatch struct {
	posterior Posterior
	psi       *Node // [W] or nil
	batch     Batch
}

// ofAllRows is Full at a batch of all rows. It is an smc.Factored: SMC reaches it from the prior by raising the power of
// the likelihood.
type ofAllRows struct{ ofBatch }

// At is a posterior at fixed shared parameters, [W] or nil, and a fixed batch: a Target, for the kernels of package
// mcmc. If it is Full, it is an smc.Factored too.
func At(p Posterior, psi *graph.Node, batch Batch) Target {
	b := ofBatch{p, psi, batch}
	if p.points == 0 && p.batches == 0 && p.power == nil {
		return ofAllRows{b}
	}
	return b
}

// LogDensity implements Target.
func (b ofBatch) LogDensity(phi *graph.Node) *graph.Node {
	return b.posterior.LogPosterior(phi, b.psi, b.batch)
}

// Gradient implements Target.
func (b ofBatch) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	return b.posterior.Gradient(phi, b.psi, b.batch)
}

// LogPrior is log p(phi), [J].
func (w ofAllRows) LogPrior(phi *graph.Node) *graph.Node { return w.posterior.Model.LogPrior(phi) }

// LogLikelihood is log p(y | phi; psi), [J].
func (w ofAllRows) LogLikelihood(phi *graph.Node) *graph.Node {
	return w.posterior.LogLikelihood(phi, w.psi, w.batch)
}

// Tempered is the posterior with the likelihood to a power, a scalar of phi's type.
func (w ofAllRows) Tempered(power *graph.Node) Target {
	return At(Posterior{Likelihood: w.posterior.Likelihood, power: power}, w.psi, w.batch)
}

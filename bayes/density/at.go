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

// ofAllRows is Full at a batch of all rows. It is an smc.Factored: SMC reaches it from the prior by raising the power
// of the likelihood.
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
	return b.posterior.logPosterior(phi, b.psi, b.batch)
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

// Rows is the number of rows. It, Batches and Batch are what ascents by mini-batches take, as pmcnet.MiniBatchAscent.
func (w ofAllRows) Rows() int { return w.batch.Y.Shape().Dim(0) }

// Batches returns the number of batches of `rows` rows that cover all rows; the last may be smaller.
func (w ofAllRows) Batches(rows int) int { return (w.Rows() + rows - 1) / rows }

// Batch is the target of optimisation by mini-batch steps: log p(phi) + B log p(y_from .. y_(from+rows-1) | phi; psi),
// where B is Batches(rows) and from an int32 scalar. Its sum over the batches is B times the log-posterior. Rows past
// the end do not count.
func (w ofAllRows) Batch(from *graph.Node, rows int) Target {
	some := w.batch.Some(from, rows, w.batch.Y.DType())
	return At(EqualBatches(w.posterior.Likelihood, w.Rows(), w.Batches(rows)), w.psi, some)
}

// ofBlock is the contribution of n of N rows to the log-posterior: (n/N) log p(phi) + log p(y_block | phi; psi). It
// equals n/N times the mini-batch estimate of the log-posterior from these rows.
type ofBlock struct {
	estimate ofBatch
	share    *graph.Node
}

// LogPrior is (n/N) log p(phi), [J]: summed over all blocks it is the log-prior.
func (b ofBlock) LogPrior(phi *graph.Node) *graph.Node {
	return graph.Mul(b.estimate.posterior.Model.LogPrior(phi), b.share)
}

// LogLikelihood is log p(y_block | phi; psi), [J].
func (b ofBlock) LogLikelihood(phi *graph.Node) *graph.Node {
	return b.estimate.posterior.LogLikelihood(phi, b.estimate.psi, b.estimate.batch)
}

// LogDensity implements Target.
func (b ofBlock) LogDensity(phi *graph.Node) *graph.Node {
	return graph.Mul(b.estimate.LogDensity(phi), b.share)
}

// Gradient implements Target.
func (b ofBlock) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	logDensity, gradient = b.estimate.Gradient(phi)
	return graph.Mul(logDensity, b.share), graph.Mul(gradient, b.share)
}

package density

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Whole is the posterior of particles given all rows, at fixed shared parameters. SMC samplers reach it from the prior
// in two ways: by raising the likelihood's power, or by adding rows.
type Whole struct {
	LogPosterior
	likelihood Likelihood
}

// At fixes the shared parameters, [W] or nil, and the batch of all rows.
func (f Full) At(psi *graph.Node, batch Batch) Whole { return Whole{At(f, psi, batch), f.Likelihood} }

// LogPrior is log p(phi), [J].
func (w Whole) LogPrior(phi *graph.Node) *graph.Node { return w.likelihood.Model.LogPrior(phi) }

// LogLikelihood is log p(y | phi; psi), [J].
func (w Whole) LogLikelihood(phi *graph.Node) *graph.Node {
	return w.likelihood.LogLikelihood(phi, w.psi, w.batch)
}

// Tempered is the posterior with the likelihood to a power, a scalar of phi's type.
func (w Whole) Tempered(power *graph.Node) Target {
	return At(powered{w.likelihood, power}, w.psi, w.batch)
}

// Rows is the number of rows.
func (w Whole) Rows() int { return w.batch.Y.Shape().Dim(0) }

// FirstRows is the posterior given the first n rows, a scalar of phi's type.
func (w Whole) FirstRows(n *graph.Node) Target {
	batch := w.batch
	batch.Count = n
	return At(Full{w.likelihood}, w.psi, batch)
}

// LogLikelihoodOf is log p(y_from .. y_(from+rows-1) | phi; psi), [J]; rows past the end do not count.
func (w Whole) LogLikelihoodOf(phi, from *graph.Node, rows int) *graph.Node {
	return w.likelihood.LogLikelihood(phi, w.psi, w.batch.some(from, rows, phi.DType()))
}

// Batches returns the number of batches of `rows` rows that cover all rows; the last may be smaller.
func (w Whole) Batches(rows int) int { return (w.Rows() + rows - 1) / rows }

// Batch is the target of optimisation by mini-batch steps: log p(phi) + B log p(y_from .. y_(from+rows-1) | phi; psi),
// where B is Batches(rows) and from an int32 scalar. Its sum over the batches is B times the log-posterior. Rows past
// the end do not count.
func (w Whole) Batch(from *graph.Node, rows int) Target {
	power := ConstAs(w.batch.Y, float64(w.Batches(rows)))
	return At(powered{w.likelihood, power}, w.psi, w.batch.some(from, rows, w.batch.Y.DType()))
}

// some returns `rows` consecutive rows from row `from` on, an int32 scalar. Rows past the end are padding.
func (b Batch) some(from *Node, rows int, dtype dtypes.DType) Batch {
	all := b.Y.Shape().Dim(0)
	number := Add(Iota(from.Graph(), shapes.Make(dtypes.Int32, rows, 1), 0), BroadcastToDims(from, rows, 1))
	number = MinScalar(number, float64(all-1))
	out := Batch{Y: Gather(b.Y, number)}
	if b.Features != nil {
		out.Features = Transpose(Gather(Transpose(b.Features, 0, 1), number), 0, 1)
	} else {
		out.X = Gather(b.X, number)
	}
	// Also where rows divides all: a caller may begin at any row.
	out.Count = ConvertDType(MinScalar(AddScalar(Neg(from), float64(all)), float64(rows)), dtype)
	return out
}

// powered is the posterior with the likelihood to a power, a scalar.
type powered struct {
	Likelihood
	power *Node
}

var _ Conditional = powered{}

// Scale implements Conditional: the power.
func (p powered) Scale(Batch) *graph.Node { return p.power }

// LogPosterior implements Conditional.
func (p powered) LogPosterior(phi, psi *graph.Node, batch Batch) *graph.Node {
	return p.logPosterior(phi, psi, batch, p.power)
}

// Gradient implements Conditional.
func (p powered) Gradient(phi, psi *graph.Node, batch Batch) (value, gradient *graph.Node) {
	return p.gradientOfPosterior(phi, psi, batch, p.power)
}

package smc

import (
	"gobnn/bayes/density"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Factored is a target with separate prior and likelihood, which LikelihoodTempering needs. The posteriors of networks,
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

// Sequential is a target that can be evaluated given the first n rows only, which DataTempering needs. The posteriors
// of networks, of package density, are Sequential; RowPosterior makes a Sequential target from two functions.
type Sequential interface {
	density.Target
	// LogPrior is as in Factored.
	LogPrior(phi *graph.Node) *graph.Node
	// Rows returns the number of rows, N.
	Rows() int
	// FirstRows is the posterior given the first n rows, where n is a scalar of phi's type, from 0, the prior, to N.
	FirstRows(n *graph.Node) density.Target
	// LogLikelihoodOf is log p(y_from .. y_(from+rows-1) | phi, the rows before), [J]: from is an int32 scalar. Rows
	// past the end count nothing.
	LogLikelihoodOf(phi, from *graph.Node, rows int) *graph.Node
}

// Folded is a Factored target with a symmetry, such as the exchange of a network's units. Problem.Start need hold only
// one image of each draw: all images have the same LogPrior, likelihood and moves, so it does not matter at which image
// a particle is. Particles that begin there are not distributed as LogPrior, so Start is not tested against it.
type Folded interface {
	Factored
	// Folded does nothing.
	Folded()
}

// Posterior is a Factored target given by two functions of phi, [J, D] to [J]; gradients are taken in reverse mode.
type Posterior struct {
	Prior      density.Func // log p(phi), with its constant
	Likelihood density.Func // log p(y | phi)
}

// RowPosterior is a target that is Factored and Sequential, given by the likelihood of single rows; gradients are
// taken in reverse mode.
type RowPosterior struct {
	Prior density.Func // log p(phi), [J, D] to [J], with its constant
	N     int          // number of rows
	// Likelihood is log p(y_n | phi_j) for some rows, [J, B], where rows, int32 [B], are their numbers from 0 to N -
	// 1. Rows are independent given phi.
	Likelihood func(phi, rows *graph.Node) *graph.Node
}

var (
	_ Factored   = Posterior{}
	_ Factored   = RowPosterior{}
	_ Sequential = RowPosterior{}
)

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

// whole is the posterior given all rows.
func (p RowPosterior) whole() Posterior {
	return Posterior{p.Prior, func(phi *graph.Node) *graph.Node {
		rows := graph.Iota(phi.Graph(), shapes.Make(dtypes.Int32, p.N), 0)
		return graph.ReduceSum(p.Likelihood(phi, rows), 1)
	}}
}

// LogDensity implements density.Target.
func (p RowPosterior) LogDensity(phi *graph.Node) *graph.Node { return p.whole().LogDensity(phi) }

// Gradient implements density.Target.
func (p RowPosterior) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	return p.whole().Gradient(phi)
}

// LogPrior implements Factored and Sequential.
func (p RowPosterior) LogPrior(phi *graph.Node) *graph.Node { return p.Prior(phi) }

// LogLikelihood implements Factored.
func (p RowPosterior) LogLikelihood(phi *graph.Node) *graph.Node { return p.whole().LogLikelihood(phi) }

// Tempered implements Factored.
func (p RowPosterior) Tempered(power *graph.Node) density.Target { return p.whole().Tempered(power) }

// Rows implements Sequential.
func (p RowPosterior) Rows() int { return p.N }

// FirstRows implements Sequential.
func (p RowPosterior) FirstRows(n *graph.Node) density.Target {
	return density.Func(func(phi *graph.Node) *graph.Node {
		rows := graph.Iota(phi.Graph(), shapes.Make(dtypes.Int32, p.N), 0)
		there := graph.LessThan(graph.ConvertDType(rows, n.DType()), n)
		return graph.Add(p.Prior(phi), sumOf(p.Likelihood(phi, rows), there))
	})
}

// LogLikelihoodOf implements Sequential.
func (p RowPosterior) LogLikelihoodOf(phi, from *graph.Node, rows int) *graph.Node {
	number := graph.Add(graph.Iota(phi.Graph(), shapes.Make(dtypes.Int32, rows), 0), from)
	there := graph.LessThan(number, graph.ConstAs(number, p.N))
	return sumOf(p.Likelihood(phi, graph.MinScalar(number, float64(p.N-1))), there)
}

// sumOf adds up the columns of x, [J, B], where there, bool [B], is true: [J]. The other columns count nothing, even if
// they are NaN.
func sumOf(x, there *graph.Node) *graph.Node {
	there = graph.BroadcastToDims(graph.ExpandAxes(there, 0), x.Shape().Dimensions...)
	return graph.ReduceSum(graph.Where(there, x, graph.ZerosLike(x)), 1)
}

package annealed

import (
	"maps"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/smc"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// This file has what the bridge, step 5, goes through: the densities between the fitted mixture and the posterior.

// bridged leads from the mixture to the posterior: at a power its density is (density)^(1-power) (posterior)^power. The
// mixture is fitted to one image of the posterior. Here density takes a particle's image in canonical order, so that
// all images are alike, as under the posterior, and moves may cross from one to the next.
type bridged struct {
	posterior density.Target
	density   density.Func // log q, [J] for phi, [J, D]
}

var _ smc.Factored = bridged{}

func (b bridged) LogDensity(phi *Node) *Node                      { return b.posterior.LogDensity(phi) }
func (b bridged) Gradient(phi *Node) (logDensity, gradient *Node) { return b.posterior.Gradient(phi) }
func (b bridged) LogPrior(phi *Node) *Node                        { return b.density(phi) }
func (b bridged) LogLikelihood(phi *Node) *Node                   { return Sub(b.LogDensity(phi), b.density(phi)) }
func (b bridged) Folded()                                         {} // see smc.Tempered
func (b bridged) Tempered(power *Node) density.Target             { return betweenTargets{b, power} }

// betweenTargets is the distribution at a power, above 0.
type betweenTargets struct {
	bridged
	power *Node
}

func (b betweenTargets) LogDensity(phi *Node) *Node {
	return Add(Mul(OneMinus(b.power), b.density(phi)), Mul(b.power, b.posterior.LogDensity(phi)))
}

func (b betweenTargets) Gradient(phi *Node) (logDensity, gradient *Node) {
	from, up := b.density.Gradient(phi)
	to, upTo := b.posterior.Gradient(phi)
	between := func(x, y *Node) *Node { return Add(Mul(OneMinus(b.power), x), Mul(b.power, y)) }
	return between(from, to), between(up, upTo)
}

// bridgeProblem is the problem of the bridge, with particles that begin at the given draws.
func (r *annealing) bridgeProblem(q mixture, start *mat.Dense) density.Problem {
	problem := r.problem
	problem.Name += "; bridge"
	problem.Data = map[string]*tensors.Tensor{}
	maps.Copy(problem.Data, r.problem.Data)
	maps.Copy(problem.Data, q.data(r.DType))
	maps.Copy(problem.Data, r.order.data(r.DType))
	problem.Initial, problem.Start = nil, r.rows(start)
	target, order := r.problem.Target, r.order
	problem.Target = func(data compute.Nodes, inputs []*Node) density.Target {
		return bridged{target(data, inputs), func(phi *Node) *Node {
			return logDensityOf(data, order.canonical(data, phi), len(q))
		}}
	}
	if key := r.problem.ProgramKey(); key != "" {
		return problem.Keyed("bridge", key, len(q), len(order.layers) > 0) // all else follows from the model
	}
	return problem
}

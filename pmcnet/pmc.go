package pmcnet

import (
	"maps"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/smc"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// This file is one iteration of Algorithm 1, in the paper's order. The settings are in settings.go, the rules that
// make weights of the honest ones in weights.go, the covariances in covariance.go.

// now holds the inputs that an iteration takes from the host.
type now struct {
	global    *Node // bool: whether resampling is global
	beta, eta *Node // weights of this iteration's covariance, and of its clipped one within it
	rng       random.Stream
	shrinkage float64
}

// proposals are M Gaussians.
type proposals struct {
	mean       *Node         // mu, [M, D]
	covariance compute.Nodes // as their family keeps them
	family     family
}

// weighted holds an iteration's draws and their weights.
type weighted struct {
	theta    *Node // [M, K, D]
	logPi    *Node // [M, K], -Inf where not finite
	wrong    *Node // number of log-densities that are NaN or +Inf, a scalar
	honest   *Node // log w, [M, K], float64
	weights  *Node // what proposals adapt and the result's draws count by, in logs, [M, K], float64
	exponent *Node // lambda, a scalar
}

// adapted holds the proposals after an iteration, with counts.
type adapted struct {
	proposals
	distinct *Node // different draws among the means, a scalar
	replaced *Node // covariances that were not positive definite, a scalar
}

// iteration is steps a to e of Algorithm 1.
func (a PMC) iteration(q proposals, target density.Target, n now) (adapted, weighted) {
	theta := q.draw(n.rng, a.Draws)  // (a)
	w := a.weigh(q, theta, target)   // (b)
	chosen := a.resample(w, n)       // (c)
	next := a.adapt(q, w, chosen, n) // (d)
	if a.Ascent == gradientAscent {
		next.mean = a.ascend(next.proposals, target, 1) // (e)
	}
	return next, w
}

// draw is step a: theta_mk ~ N(mu_m, Sigma_m), [M, K, D].
func (q proposals) draw(rng random.Stream, k int) *Node {
	m, d := q.mean.Shape().Dim(0), q.mean.Shape().Dim(1)
	z := Reshape(rng.Named("draw").Normal(q.mean.DType(), m*k, d), m, k, d)
	return Add(ExpandAxes(q.mean, 1), q.family.spread(q.covariance, z))
}

// weigh is step b: the log of pi(theta_mk) / (1/M sum_i N(theta_mk; mu_i, Sigma_i)), and what is made of it.
func (a PMC) weigh(q proposals, theta *Node, target density.Target) weighted {
	m, k, d := theta.Shape().Dim(0), theta.Shape().Dim(1), theta.Shape().Dim(2)
	given := target.LogDensity(Reshape(theta, m*k, d))
	gated := compute.Gate(given) // differs where given is NaN or +Inf; -Inf is right where there is no density
	logPi := Reshape(gated, m, k)
	logQ := q.logMixture(theta)
	w := weighted{theta: theta, logPi: logPi}
	w.wrong = ReduceAllSum(ConvertDType(NotEqual(given, gated), given.DType()))
	w.honest = compute.Gate(Sub(ConvertDType(logPi, compute.Float64), logQ))
	w.weights, w.exponent = a.weights(w.honest, leastESS)
	return w
}

// logMixture is log (1/M sum_i N(theta; mu_i, Sigma_i)), float64 [M, K].
func (q proposals) logMixture(theta *Node) *Node {
	m, k, d := theta.Shape().Dim(0), theta.Shape().Dim(1), theta.Shape().Dim(2)
	each := q.family.logDensities(q.covariance, q.mean, Reshape(theta, m*k, d)) // [M, M K]
	return AddScalar(Reshape(compute.LogSumExp(each, 0), m, k), -math.Log(float64(m)))
}

// resample is step c: which of the M K draws the means become, int32 [M].
func (a PMC) resample(w weighted, n now) *Node {
	m, k := w.weights.Shape().Dim(0), w.weights.Shape().Dim(1)
	rng := n.rng.Named("resample")
	own := Exp(Sub(w.weights, maxOfRows(w.weights)))
	chosen := Add(MulScalar(Iota(own.Graph(), shapes.Make(dtypes.Int32, m), 0), float64(k)), rng.CategoricalEach(own))
	if a.Resampling == 0 { // always local
		return chosen
	}
	all := smc.Stratified.Draw(Reshape(w.weights, m*k), m, rng.Named("global"))
	return Where(BroadcastToDims(n.global, m), all, chosen)
}

// adapt is step d, the covariances; the means are the chosen draws. A covariance travels with the draws of its
// proposal. A proposal none of whose draws has a weight stays as it is.
func (a PMC) adapt(q proposals, w weighted, chosen *Node, n now) adapted {
	m, k, d := w.theta.Shape().Dim(0), w.theta.Shape().Dim(1), w.theta.Shape().Dim(2)
	dtype := w.theta.DType()
	alive := LogicalAny(IsFinite(w.weights), 1) // [M]
	parent := DivScalar(Sub(chosen, Mod(chosen, ConstAs(chosen, k))), float64(k))
	ofParents := func(x *Node) *Node { return Gather(x, ExpandAxes(parent, -1)) }

	// S^, the covariance of the weighted draws of each proposal, and S~ with the sqrt(K) largest weights clipped to the
	// next largest.
	clipped := clip(w.weights, int(math.Sqrt(float64(k))))
	normalised := func(l *Node) *Node {
		weights := Exp(Sub(l, maxOfRows(l)))
		weights = Div(weights, ReduceAndKeep(weights, ReduceSum, 1))
		return ConvertDType(compute.Finite(weights), dtype)
	}
	s := newScatter(w.theta, normalised(w.weights), normalised(clipped), n.beta, n.eta, n.shrinkage)
	// Sigma' = (1 - beta) Sigma + beta (1 - eta) S^ + beta eta S~; the last good one where that is not positive definite.
	next, definite := q.family.update(q.covariance, s)
	out := adapted{replaced: ReduceAllSum(ConvertDType(And(alive, LogicalNot(definite)), dtype))}
	good := And(alive, definite)
	out.family, out.covariance = q.family, compute.Nodes{}
	for _, name := range slices.Sorted(maps.Keys(next)) { // in one order, so that kept programs are found again
		out.covariance[name] = ofParents(mcmc.Choose(good, next[name], q.covariance[name]))
	}
	mean := Gather(Reshape(w.theta, m*k, d), ExpandAxes(chosen, -1))
	out.mean = mcmc.Choose(ofParents(alive), mean, q.mean)
	out.distinct = distinct(chosen, dtype)
	return out
}

// ascend is step e: mu' = mu + gamma scale Sigma grad log pi(mu), where gamma is the largest of 1, 1/2, 1/4, ... at
// which log pi does not decrease. All gammas of all M means are evaluated in one batch. Where none is good enough, or
// nothing is finite, the mean stays.
func (a PMC) ascend(q proposals, target density.Target, scale float64) *Node {
	m, d := q.mean.Shape().Dim(0), q.mean.Shape().Dim(1)
	g, dtype := q.mean.Graph(), q.mean.DType()
	tries := mostHalvings + 1
	before, gradient := target.Gradient(q.mean)
	before, gradient = StopGradient(compute.Gate(before)), StopGradient(gradient)
	usable := LogicalAll(IsFinite(gradient), 1)
	gradient = mcmc.Choose(usable, gradient, ZerosLike(gradient))
	step := MulScalar(q.family.times(q.covariance, gradient), scale) // [M, D]
	number := Iota(g, shapes.Make(dtype, tries, 1, 1), 0)
	gamma := Exp(MulScalar(number, -math.Ln2))
	tried := Add(ExpandAxes(q.mean, 0), Mul(gamma, ExpandAxes(step, 0))) // [tries, M, D]
	after := Reshape(compute.Gate(target.LogDensity(Reshape(tried, tries*m, d))), tries, m)
	good := And(GreaterOrEqual(after, BroadcastToDims(ExpandAxes(before, 0), tries, m)), IsFinite(after))
	count := BroadcastToDims(Reshape(number, tries, 1), tries, m)
	first := ReduceMin(Where(good, count, AddScalar(ZerosLike(count), float64(tries))), 0) // [M]; tries: none
	moved := And(usable, LessThan(first, ConstAs(first, float64(tries))))
	scaled := Mul(step, ExpandAxes(Exp(MulScalar(first, -math.Ln2)), 1))
	return mcmc.Choose(moved, Add(q.mean, scaled), q.mean)
}

// distinct counts the different numbers among chosen, int32 [M].
func distinct(chosen *Node, dtype compute.DType) *Node {
	return smc.UniqueAncestors(Sort(chosen, 0, true), dtype)
}

package pmcnet

import (
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/optim"
	"gobnn/bayes/smc"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// This file is Algorithm 1, top to bottom: a PMC's settings, then one iteration in the paper's order. What is compiled
// and kept is in compiled.go, what a covariance is in covariance.go and lowrank.go.

// PMC is adaptive importance sampling with M proposals N(mu_m, Sigma_m), K draws of each in every one of T iterations:
// PMCnet (Algorithm 1; the package comment has its steps). The zero value of every field works. The paper's variants
// are settings:
//
//	PMC{}                                                     PMCnet
//	PMC{GradientFree: true}                                   gradient-free PMCnet
//	PMC{Covariance: FixedCovariance}                          covariance-free PMCnet
//	PMC{GradientFree: true, Covariance: FixedCovariance}      DM-PMC (Elvira, Martino, Luengo and Bugallo 2017)
//	PMC{Light: true, Covariance: DiagonalCovariance}          PMCnet-light
//
// An iteration takes M K evaluations of the target, M gradients and, for the backtracking, M (Halvings + 1) evaluations
// more; with full covariances it also takes 3 M D^3 + M^2 K D^2 multiplications.
type PMC struct {
	Proposals  int `json:"proposals"`  // M; default 50
	Draws      int `json:"draws"`      // K, the draws of each proposal in each iteration; default 100
	Iterations int `json:"iterations"` // T; default 20

	// Covariance is the form of the proposals' covariances; default FullCovariance, with Light DiagonalCovariance. Light
	// does not allow full ones.
	Covariance Covariance `json:"covariance"`
	Rank       int        `json:"rank"` // of LowRankCovariance; default 5, or D - 1 if that is less
	// StdDev is sigma: each covariance begins as sigma^2 times the identity. Default 0.1.
	StdDev float64 `json:"std_dev"`
	// Forgetting is beta, the weight of an iteration's own covariance in the update: Sigma' = (1 - beta) Sigma + beta
	// (...). Above 0 and at most 1; default 0.5.
	Forgetting float64 `json:"forgetting"`
	// Shrinkage, for full covariances, is the share, from 0 to 1, by which the off-diagonal elements of the draws'
	// covariance are reduced, since K draws have a covariance of rank below K. Default 0: D/(D+K) if K <= D, which
	// Result.Warnings reports, and none if K > D. NoShrinkage: never any.
	Shrinkage float64 `json:"shrinkage"`

	// Start is where the means begin; default AroundMLE for Fit, FromPrior for Sample.
	Start Start `json:"start"`
	// Noise is the standard deviation of the Gaussian noise that AroundMLE and AroundMAP add to each coordinate of each
	// mean; default 1, which the authors take for shallow networks (.02 for deep ones).
	Noise float64 `json:"noise"`
	// Epochs, BatchSize and Optimiser are the settings of the training that finds the MLE or MAP, as in baseline.Settings.
	Epochs    int        `json:"epochs"`
	BatchSize int        `json:"batch_size"` // of the mini-batches of Light too; default 50, or all rows if fewer
	Optimiser optim.Adam `json:"optimiser"`

	// Weights are the weights by which proposals adapt and of the result's draws; default Honest.
	Weights Weights `json:"weights"`
	// Own, if set, computes these weights by a function of your own. Weights must then be left out, and ESS is not used.
	Own Weighting `json:"-"`
	// ESS is the effective sample size, as a share of the number of draws, that Tempered and TemperedWithin aim at; above
	// 0 and at most 1, default 0.1.
	ESS float64 `json:"ess"`
	// Mixture is the number of proposals in the mixture by which a draw is weighed: its own and others, which do not
	// depend on the draws. It must divide Proposals. Default M, all proposals, which costs M^2 K densities in each
	// iteration: most of its time with full covariances in many dimensions. With 1 each draw is weighed by its own
	// proposal. The evidence is unbiased for every choice, and more proposals give a smaller variance (Elvira, Martino,
	// Luengo and Bugallo 2015, "Efficient multiple importance sampling estimators").
	Mixture int `json:"mixture"`
	// Resampling is how the next means are drawn; default Local.
	Resampling Resampling `json:"resampling"`
	// Scheme is the resampling scheme of a global resampling; default smc.Stratified.
	Scheme smc.Resampler `json:"scheme"`

	// GradientFree leaves out step 5, the step of the means along the gradient.
	GradientFree bool `json:"gradient_free"`
	// Halvings is the largest number of times that gamma is halved in step 5; default 20.
	Halvings int `json:"halvings"`
	// Light replaces step 5 by one epoch of mini-batch steps (PMCnet-light). It needs a Batched target.
	Light bool `json:"light"`

	// Keep says which iterations' draws are the result; default LastIteration.
	Keep Keep `json:"keep"`
}

// NoShrinkage, as the value of PMC.Shrinkage, leaves the draws' covariances as they are.
const NoShrinkage = -1

// Weights are the weights of the draws, computed from the honest weights w = pi(theta) / q(theta), with pi the target
// and q the mixture of proposals. The evidence and k-hat are always computed from the honest weights.
type Weights string

// The weights.
const (
	// Honest is w itself, the paper's.
	Honest Weights = "honest"
	// Tempered is w^lambda, with the largest lambda, at most 1, for which the effective sample size of all draws is at
	// least PMC.ESS times their number. The draws are then of a distribution between q and the target.
	Tempered Weights = "tempered"
	// TemperedWithin adapts each proposal m by w^lambda_m, with lambda_m chosen such that the effective sample size of its
	// K draws is at least PMC.ESS K. Global resampling and the result use the weights of Tempered.
	TemperedWithin Weights = "tempered within proposals"
	// Clipped cuts the sqrt(M K) largest weights to the next largest (Ionides 2008; Koblents and Miguez 2015).
	Clipped Weights = "clipped"
)

// Weighting is a method of your own to compute the weights for adaptation and for the result. The evidence and k-hat
// remain those of the honest weights. A run resumes from a checkpoint only with a Weighting of the same type, Title and
// exported fields, as JSON.
type Weighting interface {
	// Title names it in results and warnings.
	Title() string
	// Weigh returns two sets of log-weights computed from the honest ones: adapt, by which proposals adapt, and output, of
	// the result's draws. All are [M, K], float64, with -Inf for weight 0. It builds graph, and panics as GoMLX does.
	Weigh(honest *graph.Node) (adapt, output *graph.Node)
}

// Covariance is the form of the covariance matrices, and how they are stored.
type Covariance string

// The covariances.
const (
	FullCovariance     Covariance = "full"              // [M, D, D]
	DiagonalCovariance Covariance = "diagonal"          // [M, D]: the same update on the diagonal
	LowRankCovariance  Covariance = "low rank+diagonal" // U U^T + diag(s^2), U of PMC.Rank columns
	FixedCovariance    Covariance = "fixed"             // sigma^2 times the identity, not adapted
)

// Resampling is how an iteration draws the next means: 0 is Local, and n > 0 is Global in every n-th iteration and
// local in the others.
type Resampling int

// The ways to resample.
const (
	Local  Resampling = 0 // each mean becomes one of its own proposal's K draws, by their weights
	Global Resampling = 1 // all means are drawn from all M K draws; a mean brings the covariance of its draw's proposal
)

// GlocalEvery resamples globally in every n-th iteration and locally in the others. The authors' program uses n = 2.
func GlocalEvery(n int) Resampling { return Resampling(n) }

// Start is where the means begin.
type Start string

// The starts.
const (
	AroundMLE Start = "MLE"   // the maximum of the likelihood, found by Adam, plus noise; for Fit only
	AroundMAP Start = "MAP"   // the maximum of the posterior density, found by Adam, plus noise; for Fit only
	FromPrior Start = "prior" // M draws of Problem.Initial; Problem.Start, [M, D], if that is set
)

// Keep says which iterations' draws are the result.
type Keep string

// The choices.
const (
	LastIteration Keep = "last iteration"
	AllIterations Keep = "all iterations" // T M K draws; unless Weights is Honest, iterations have equal total weights
)

// now is what an iteration takes from the host.
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

// weighted are an iteration's draws.
type weighted struct {
	theta    *Node // [M, K, D]
	logPi    *Node // [M, K], -Inf where not finite
	wrong    *Node // number of log-densities that are NaN or +Inf, a scalar
	honest   *Node // log w, [M, K], float64
	adapt    *Node // what proposals adapt by, [M, K], float64
	output   *Node // what the result's draws count by, [M, K], float64
	exponent *Node // lambda, a scalar
}

// adapted is what an iteration makes of the proposals.
type adapted struct {
	proposals
	distinct *Node // different draws among the means, a scalar
	replaced *Node // covariances that were not positive definite, a scalar
	stalled  *Node // proposals without a weight, which stay as they are, a scalar
	climb
}

// climb is a step of all means.
type climb struct {
	halvings *Node // mean of those that moved, a scalar
	stayed   *Node // means that no step was good for, a scalar
}

// iteration is steps a to e of Algorithm 1.
func (a PMC) iteration(q proposals, target mcmc.Target, n now) (adapted, weighted) {
	theta := q.draw(n.rng, a.Draws)  // (a)
	w := a.weigh(q, theta, target)   // (b)
	chosen := a.resample(w, n)       // (c)
	next := a.adapt(q, w, chosen, n) // (d)
	if !a.GradientFree && !a.Light {
		next.mean, next.climb = a.ascend(next.proposals, target, 1) // (e)
	}
	return next, w
}

// draw is step a: theta_mk ~ N(mu_m, Sigma_m), [M, K, D].
func (q proposals) draw(rng random.Stream, k int) *Node {
	m, d := q.mean.Shape().Dim(0), q.family.normals(q.mean.Shape().Dim(1))
	z := Reshape(rng.Named("draw").Normal(q.mean.DType(), m*k, d), m, k, d)
	return Add(ExpandAxes(q.mean, 1), q.family.spread(q.covariance, z))
}

// weigh is step b: the log of pi(theta_mk) / (1/M sum_i N(theta_mk; mu_i, Sigma_i)), and what is made of it.
func (a PMC) weigh(q proposals, theta *Node, target mcmc.Target) weighted {
	m, k, d := theta.Shape().Dim(0), theta.Shape().Dim(1), theta.Shape().Dim(2)
	given := target.LogDensity(Reshape(theta, m*k, d))
	gated := compute.Gate(given) // differs where given is NaN or +Inf; -Inf is right where there is no density
	logPi := Reshape(gated, m, k)
	logQ := q.logMixture(theta, a.Mixture)
	w := weighted{theta: theta, logPi: logPi}
	w.wrong = ReduceAllSum(ConvertDType(NotEqual(given, gated), given.DType()))
	w.honest = compute.Gate(Sub(ConvertDType(logPi, compute.Float64), logQ))
	w.adapt, w.output, w.exponent = a.weights(w.honest)
	return w
}

// logMixture is log (1/P sum_i N(theta; mu_i, Sigma_i)) over the P proposals of a draw's group, float64 [M, K]. There
// are M/P groups, and proposal m is in group m mod M/P: after a global resampling neighbours have the same parent.
func (q proposals) logMixture(theta *Node, p int) *Node {
	m, k, d := theta.Shape().Dim(0), theta.Shape().Dim(1), theta.Shape().Dim(2)
	groups := m / p
	grouped := Reshape(Transpose(Reshape(theta, p, groups, k, d), 0, 1), groups, p*k, d)
	each := q.family.logDensities(q.covariance, q.mean, grouped) // [M, P K]: of proposal m at its group's draws
	mixture := compute.LogSumExp(Reshape(each, p, groups, p*k), 0)
	mixture = Transpose(Reshape(mixture, groups, p, k), 0, 1)
	return AddScalar(Reshape(mixture, m, k), -math.Log(float64(p)))
}

// weights are those to adapt by and those of the result, [M, K], and the exponent lambda of the latter, of honest ones.
func (a PMC) weights(honest *Node) (adapt, output, exponent *Node) {
	m, k := honest.Shape().Dim(0), honest.Shape().Dim(1)
	one := ConstAs(honest, 1.)
	// temper raises the rows of log-weights, [G, J], to the powers that leave an effective sample size of a share of J.
	temper := func(l *Node) (tempered, powers *Node) {
		powers = exponents(l, a.ESS*float64(l.Shape().Dim(1)))
		return power(l, ExpandAxes(powers, 1)), powers
	}
	if a.Own != nil {
		adapt, output = a.Own.Weigh(honest)
		for _, l := range []*Node{adapt, output} {
			if l == nil || !l.Shape().Equal(honest.Shape()) {
				panic(fmt.Errorf("pmcnet: PMC.Own, %T, gives weights that are not of the shape %s of the honest ones", a.Own,
					honest.Shape()))
			}
		}
		return compute.Gate(adapt), compute.Gate(output), one
	}
	switch a.Weights {
	case Tempered, TemperedWithin:
		tempered, lambda := temper(Reshape(honest, 1, m*k))
		output, exponent = Reshape(tempered, m, k), Reshape(lambda)
		if adapt = output; a.Weights == TemperedWithin {
			adapt, _ = temper(honest)
		}
		return adapt, output, exponent
	case Clipped:
		all := Reshape(honest, 1, m*k)
		clipped := Reshape(clip(all, int(math.Sqrt(float64(m*k)))), m, k)
		return clipped, clipped, one
	}
	return honest, honest, one
}

// power is l times a power, at least 0, where l = -Inf stays so.
func power(l, p *Node) *Node {
	return compute.Only(IsFinite(l), Mul(compute.Finite(l), BroadcastToShape(p, l.Shape())))
}

// clip puts the n largest of each row of log-weights, [G, J], down to the next largest; where that is -Inf, the row
// stays as it is.
func clip(l *Node, n int) *Node {
	if n = min(n, l.Shape().Dim(1)-1); n < 1 {
		return l
	}
	largest, _ := TopK(l, n+1, 1)
	next := Slice(largest, AxisRange(), AxisElem(n)) // [G, 1]
	next = Where(IsFinite(next), next, Slice(largest, AxisRange(), AxisElem(0)))
	return Min(l, BroadcastToShape(next, l.Shape()))
}

// resample is step c: which of the M K draws the means become, int32 [M].
func (a PMC) resample(w weighted, n now) *Node {
	m, k := w.adapt.Shape().Dim(0), w.adapt.Shape().Dim(1)
	rng := n.rng.Named("resample")
	own := Exp(Sub(w.adapt, maxOfRows(w.adapt)))
	chosen := Add(MulScalar(Iota(own.Graph(), shapes.Make(dtypes.Int32, m), 0), float64(k)), rng.CategoricalEach(own))
	if a.Resampling == Local {
		return chosen
	}
	all := a.Scheme.Draw(Reshape(w.output, m*k), m, rng.Named("global"))
	return Where(BroadcastToDims(n.global, m), all, chosen)
}

// adapt is step d, the covariances; the means are the chosen draws. A covariance travels with the draws of its
// proposal. A proposal none of whose draws has a weight stays as it is.
func (a PMC) adapt(q proposals, w weighted, chosen *Node, n now) adapted {
	m, k, d := w.theta.Shape().Dim(0), w.theta.Shape().Dim(1), w.theta.Shape().Dim(2)
	dtype := w.theta.DType()
	alive := LogicalAny(IsFinite(w.adapt), 1) // [M]
	parent := DivScalar(Sub(chosen, Mod(chosen, ConstAs(chosen, k))), float64(k))
	ofParents := func(x *Node) *Node { return Gather(x, ExpandAxes(parent, -1)) }

	// S^, the covariance of the weighted draws of each proposal, and S~ with the sqrt(K) largest weights clipped to the
	// next largest.
	clipped := clip(w.adapt, int(math.Sqrt(float64(k))))
	normalised := func(l *Node) *Node {
		weights := Exp(Sub(l, maxOfRows(l)))
		weights = Div(weights, ReduceAndKeep(weights, ReduceSum, 1))
		return ConvertDType(compute.Finite(weights), dtype)
	}
	s := newScatter(w.theta, normalised(w.adapt), normalised(clipped), n.beta, n.eta, n.shrinkage)
	// Sigma' = (1 - beta) Sigma + beta (1 - eta) S^ + beta eta S~; the last good one where that is not positive definite.
	next, definite := q.family.update(q.covariance, s)
	out := adapted{
		replaced: ReduceAllSum(ConvertDType(And(alive, LogicalNot(definite)), dtype)),
		stalled:  ReduceAllSum(ConvertDType(LogicalNot(alive), dtype)),
		climb:    climb{ConstAs(w.theta, 0.), ConstAs(w.theta, 0.)},
	}
	good := And(alive, definite)
	out.family, out.covariance = q.family, compute.Nodes{}
	for name, c := range next {
		out.covariance[name] = ofParents(mcmc.Choose(good, c, q.covariance[name]))
	}
	mean := Gather(Reshape(w.theta, m*k, d), ExpandAxes(chosen, -1))
	out.mean = mcmc.Choose(ofParents(alive), mean, q.mean)
	out.distinct = distinct(chosen, dtype)
	return out
}

// ascend is step e: mu' = mu + gamma scale Sigma grad log pi(mu), where gamma is the largest of 1, 1/2, 1/4, ... at
// which log pi does not decrease. All gammas of all M means are evaluated in one batch. Where none is good enough, or
// nothing is finite, the mean stays.
func (a PMC) ascend(q proposals, target mcmc.Target, scale float64) (mean *Node, c climb) {
	m, d := q.mean.Shape().Dim(0), q.mean.Shape().Dim(1)
	g, dtype := q.mean.Graph(), q.mean.DType()
	tries := a.Halvings + 1
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
	mean = mcmc.Choose(moved, Add(q.mean, scaled), q.mean)
	many := ReduceAllSum(ConvertDType(moved, dtype))
	halved := ReduceAllSum(Where(moved, first, ZerosLike(first)))
	return mean, climb{Div(halved, MaxScalar(many, 1)), AddScalar(Neg(many), float64(m))}
}

// maxOfRows is the largest log-weight of each row, [G, 1]; 0 where all are -Inf.
func maxOfRows(l *Node) *Node {
	largest := ReduceAndKeep(l, ReduceMax, 1)
	return Where(IsFinite(largest), largest, ZerosLike(largest))
}

// distinct counts the different numbers among chosen, int32 [M].
func distinct(chosen *Node, dtype compute.DType) *Node {
	return smc.UniqueAncestors(Sort(chosen, 0, true), dtype)
}

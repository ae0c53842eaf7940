package exchange

import (
	"fmt"
	"maps"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/internal/tempering"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/smc"
	"gobnn/bayes/tryout"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// mostRatio is the largest ratio of a power to the one before it. A log-likelihood is off by about 1e-7 of the
// log-density divided by the power, see moved; in an exchange this then stays below some 1e-4 of the log-density.
const mostRatio = 1000

// leastCarried is the smallest power at which what the kernel carries tells the log-likelihood. Below it the error,
// 1e-7 of the log-density over the power, could be of size 1, and a replica whose moves are rejected would take it up
// to large powers. Ladders with a smaller power evaluate all log-likelihoods in each sweep.
const leastCarried = 1e-3

// answerOf is the gain by which log step sizes respond in the warm-up to a lack of acceptance: smaller than in package
// smc, since a power has few replicas, and more sweeps.
const answerOf = 0.3

// usualSteps is the number of steps of a trajectory whose kernel sets none.
const usualSteps = 20

// sweep builds the graph of a sweep. There are T powers, the prior's included. The kernel moves the M = (T - 1) R
// replicas at the other T - 1 powers. Replica (t - 1) R + r belongs to set r and power t.
type sweep struct {
	carrier           *mcmc.Carrier
	carries           mcmc.Carries // what the kernel carries
	powers, sets, dim int          // T, R and D
	dtype             compute.DType
	// tuned: step sizes are adapted towards a target acceptance; scaled: so are the scales of the coordinates; steered:
	// the kernel leaves the length of trajectories to the sampler.
	tuned, scaled, steered bool
	acceptance, stepSize   float64 // the target acceptance; the initial step size
	factored               func(nodes compute.Nodes) smc.Factored
	initial                func(rng random.Stream, n int) *graph.Node // draws of the prior, [n, D]
}

// The entries of a sweep's state. Between sweeps they are the powers, from 0 to 1, [T], which no sweep changes; the
// replicas, [M, D]; step sizes, [T - 1]; and scales, [T - 1, D]. If the kernel carries them, there are also the
// log-likelihoods, [M], and their gradients, [M, D], so that no point is evaluated twice. "descending", [M], is 1 for
// each replica that has been at the prior since it was last at the posterior. Within a sweep there is also what the
// kernel carries, as a function of phi / scale. "unfinished", [M], is 1 for each transition that is not complete;
// "accepted", [M], has the acceptance of the complete ones; "non_finite", [M], is 1 for each transition that was not
// finite.
const (
	powersName     = "powers"
	replicasName   = "replicas"
	likelihoodName = "replica_log_likelihoods"
	gradientsName  = "replica_gradients"
	descendName    = "descending"
	stepsName      = "step_sizes"
	scalesName     = "scales"
	unfinishedName = "unfinished"
	acceptedName   = "accepted"
	nonFiniteName  = "non_finite"
)

// shapes returns the shapes of the entries between sweeps.
func (s *sweep) shapes() map[string]shapes.Shape {
	moved, each := s.replicas(), s.powers-1
	all := map[string]shapes.Shape{
		replicasName: shapes.Make(s.dtype, moved, s.dim), descendName: shapes.Make(s.dtype, moved),
		stepsName: shapes.Make(s.dtype, each), scalesName: shapes.Make(s.dtype, each, s.dim),
	}
	if s.carries >= mcmc.CarriesLogDensity {
		all[likelihoodName] = all[descendName]
	}
	if s.carries == mcmc.CarriesGradient {
		all[gradientsName] = all[replicasName]
	}
	return all
}

// entries names the entries between sweeps, starts those of them that the start of a transition reads, and within those
// that exist during a sweep.
func (s *sweep) entries() []string { return slices.Sorted(maps.Keys(s.shapes())) }

func (s *sweep) starts() []string {
	return slices.DeleteFunc(s.entries(), func(name string) bool { return name == descendName || name == stepsName })
}

func (s *sweep) within() []string {
	return append(s.carrier.Names(), unfinishedName, acceptedName, nonFiniteName)
}

// replicas is M, the number of replicas that the kernel moves.
func (s *sweep) replicas() int { return (s.powers - 1) * s.sets }

// first draws all replicas from the prior.
func (s *sweep) first(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	rng, g := random.FromKey(inputs[0]), inputs[0].Graph()
	phi := s.initial(rng, s.replicas())
	if want := shapes.Make(s.dtype, s.replicas(), s.dim); !phi.Shape().Equal(want) {
		panic(fmt.Errorf("Problem.Initial draws %s for %d replicas: it must be [%d, %d]", phi.Shape(), s.replicas(),
			s.replicas(), s.dim))
	}
	next := s.evaluated(nodes, phi)
	next[descendName] = Zeros(g, shapes.Make(s.dtype, s.replicas()))
	next[scalesName] = Ones(g, shapes.Make(s.dtype, s.powers-1, s.dim))
	next[stepsName] = AddScalar(Zeros(g, shapes.Make(s.dtype, s.powers-1)), s.stepSize)
	draws, _ := tryout.DrawsToTry(s.dim)
	if draws == 0 {
		return next, Const(g, []float64{0})
	}
	return next, tryout.Draws(s.initial(rng.Named("tried"), draws), s.factored(nodes).LogPrior)
}

// evaluated returns the entries of replicas at phi, with the log-likelihood and gradient as far as the kernel carries
// them.
func (s *sweep) evaluated(nodes compute.Nodes, phi *Node) compute.Nodes {
	target, at := s.factored(nodes), compute.Nodes{replicasName: phi}
	switch s.carries {
	case mcmc.CarriesLogDensity:
		at[likelihoodName] = target.LogLikelihood(phi)
	case mcmc.CarriesGradient:
		prior, ofPrior := density.Func(target.LogPrior).Gradient(phi)
		at[likelihoodName], at[gradientsName] = likelihoodGradient(target, phi, prior, ofPrior)
	}
	return at
}

// likelihoodGradient is the log-likelihood, [J], and its gradient, [J, D], given the prior's log-density and gradient.
// The target has its own reverse pass for the posterior, in parts that fit a cache; subtracting the prior's values
// leaves the likelihood's.
func likelihoodGradient(target smc.Factored, phi, prior, ofPrior *Node) (logLikelihood, gradient *Node) {
	whole, ofWhole := target.Gradient(phi)
	return Sub(whole, prior), Sub(ofWhole, ofPrior)
}

// transition begins a transition of each replica.
func (s *sweep) transition(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	rng := random.FromKey(inputs[0])
	scale := s.each(nodes[scalesName])
	distribution := s.target(nodes, scale)
	distribution.at = Div(nodes[replicasName], scale)
	distribution.logLikelihood, distribution.gradient = nodes[likelihoodName], nodes[gradientsName]
	next := s.carrier.Start(rng, distribution.at, distribution)
	none := Zeros(scale.Graph(), shapes.Make(s.dtype, s.replicas()))
	next[unfinishedName], next[acceptedName], next[nonFiniteName] = OnesLike(none), none, none
	return next, ConstAs(scale, []float64{0})
}

// moves makes one move of each replica whose transition is unfinished. Each has its own step size, see
// tempering.StepShares. The record is the number of transitions that are unfinished after it.
func (s *sweep) moves(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	rng := random.FromKey(inputs[0])
	tuning := mcmc.Tuning{}
	if s.tuned {
		shares, _ := tempering.StepShares(random.FromKey(inputs[2]), s.dtype, s.replicas(), ConvertDType(inputs[3], s.dtype))
		tuning.StepSize = Mul(s.each(nodes[stepsName]), shares)
	}
	if s.steered {
		tuning.Steps = ConvertDType(inputs[1], s.dtype)
	}
	unfinished := nodes[unfinishedName]
	distribution := s.target(nodes, s.each(nodes[scalesName]))
	next, ended, info := s.carrier.MoveUnfinished(rng, nodes, unfinished, distribution, tuning)
	next[unfinishedName] = Sub(unfinished, ended)
	next[acceptedName], next[nonFiniteName] = Add(nodes[acceptedName], ended), Identity(nodes[nonFiniteName])
	if info.Acceptance != nil {
		next[acceptedName] = Add(nodes[acceptedName], Mul(ended, compute.Finite(info.Acceptance)))
	}
	if info.NonFinite != nil {
		next[nonFiniteName] = Add(nodes[nonFiniteName], Mul(ended, info.NonFinite))
	}
	return next, Reshape(ReduceAllSum(next[unfinishedName]), 1)
}

// carriedStep compares what the kernel carries with each replica's distribution.
func (s *sweep) carriedStep(nodes compute.Nodes, _ []*Node) (compute.Nodes, *Node) {
	return nil, s.carrier.Carried(nodes, s.target(nodes, s.each(nodes[scalesName])))
}

// exchange puts new draws at the prior and exchanges neighbours. If it adapts, it also updates step sizes and scales by
// the outcome of the moves. Its record has, in this order: the log-likelihoods before the exchange, [T R]; the kernel's
// mean acceptance at each power but the prior's, [T - 1]; and the mean probability of exchange of each pair, [T - 1], 0
// for pairs that were not tried. Then come the number of arrivals and the number of transitions that were not finite.
// Last are the posterior's replicas after the exchange: their log-likelihoods, [R], log-densities, [R], and phi, [R D].
func (s *sweep) exchange(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	rng := random.FromKey(inputs[0])
	adapts, parity := GreaterThan(inputs[1], ZerosLike(inputs[1])), ConvertDType(inputs[2], s.dtype)
	drawn, moved := s.evaluated(nodes, s.initial(rng.Named("prior"), s.sets)), s.moved(nodes)
	drawn[descendName], moved[descendName] = Ones(adapts.Graph(), shapes.Make(s.dtype, s.sets)), nodes[descendName]
	all := compute.Nodes{}
	for _, name := range slices.Sorted(maps.Keys(moved)) { // in one order, so that what was compiled is found again
		all[name] = Concatenate([]*Node{drawn[name], moved[name]}, 0)
	}
	logLikelihood := all[likelihoodName]
	if logLikelihood == nil {
		logLikelihood = s.factored(nodes).LogLikelihood(all[replicasName])
	}
	logLikelihood = compute.Gate(logLikelihood)
	all[likelihoodName] = logLikelihood
	next, odds := s.swap(rng.Named("pairs"), nodes, all, logLikelihood, parity)
	swapped := next[likelihoodName]
	if s.carries < mcmc.CarriesLogDensity {
		delete(next, likelihoodName)
	}

	acceptance := ReduceMean(s.byPower(nodes[acceptedName]), 1)
	next[stepsName], next[scalesName] = Identity(nodes[stepsName]), Identity(nodes[scalesName])
	adapt := func(name string, to *Node) {
		next[name] = Where(BroadcastToDims(adapts, to.Shape().Dimensions...), to, nodes[name])
	}
	if s.tuned {
		_, full := tempering.StepShares(random.FromKey(inputs[3]), s.dtype, s.replicas(), parity)
		outcome := tempering.OfFull(s.byPower(nodes[acceptedName]), s.byPower(full), 1)
		adapt(stepsName, Mul(nodes[stepsName], Exp(MulScalar(AddScalar(outcome, -s.acceptance), answerOf))))
	}
	if s.scaled {
		adapt(scalesName, s.rescaled(nodes, moved[replicasName]))
	}
	posterior := AxisRangeToEnd(s.replicas() - s.sets)
	arrived := Slice(next[descendName], posterior)
	next[descendName] = Concatenate([]*Node{
		Slice(next[descendName], AxisRange(0, s.replicas()-s.sets)), ZerosLike(arrived),
	}, 0)

	var record []*Node
	of, at := Slice(swapped, posterior), Slice(next[replicasName], posterior)
	for _, v := range []*Node{
		logLikelihood, acceptance, odds, ReduceAllSum(arrived), ReduceAllSum(nodes[nonFiniteName]),
		of, compute.Gate(Add(s.factored(nodes).LogPrior(at), of)), at,
	} {
		record = append(record, Reshape(ConvertDType(v, compute.Float64), v.Shape().Size()))
	}
	return next, Concatenate(record, 0)
}

// moved returns the entries of the replicas after their moves. The kernel carries log p(phi) + power log p(y | phi) as
// a function of phi / scale; subtracting the log-prior and dividing by the power gives the log-likelihood. Its rounding
// error is some 1e-7 of the whole over the power, which is small enough for an exchange, see mostRatio.
func (s *sweep) moved(nodes compute.Nodes) compute.Nodes {
	scale := s.each(nodes[scalesName])
	phi := Mul(nodes[s.carrier.Phi()], scale)
	at := compute.Nodes{replicasName: phi}
	logPrior, power := s.factored(nodes).LogPrior, s.replicaPowers(nodes)
	likelihood := func(prior *Node) *Node { return Div(Sub(nodes[s.carrier.LogDensity()], prior), power) }
	switch s.carries {
	case mcmc.CarriesLogDensity: // of a prior that may have no gradient
		at[likelihoodName] = likelihood(logPrior(phi))
	case mcmc.CarriesGradient:
		prior, ofPrior := density.Func(logPrior).Gradient(phi)
		gradient := Sub(Div(nodes[s.carrier.Gradient()], scale), ofPrior)
		at[likelihoodName] = likelihood(prior)
		at[gradientsName] = Div(gradient, BroadcastToShape(ExpandAxes(power, 1), gradient.Shape()))
	}
	return at
}

// rescaled moves the scales at each power a tenth of the way to the LocalScale of its replicas after their moves.
func (s *sweep) rescaled(nodes compute.Nodes, moved *Node) *Node {
	// The kernel carries the gradient with respect to phi / scale.
	gradient := s.byPower(Div(nodes[s.carrier.Gradient()], s.each(nodes[scalesName])))
	phi := s.byPower(moved)
	stdDev := Sqrt(AddScalar(ReduceMean(Square(Sub(phi, ReduceAndKeep(phi, ReduceMean, 1))), 1), 1e-12))
	return Add(MulScalar(nodes[scalesName], .9), MulScalar(smc.LocalScale(stdDev, compute.Finite(gradient)), .1))
}

// swap exchanges neighbours of the pairs (0, 1), (2, 3), .. or, with parity 1, (1, 2), (3, 4), .. . all holds the
// entries of all replicas, with the prior's, [T R, ..]; next holds the entries of the M replicas above the prior. odds,
// [T - 1], is the mean probability of exchange of each pair that was tried, and 0 for the others.
func (s *sweep) swap(
	rng random.Stream, nodes, all compute.Nodes, logLikelihood, parity *Node,
) (next compute.Nodes, odds *Node) {
	g, pairs := logLikelihood.Graph(), s.powers-1
	lower := make([]float64, pairs)
	for t := range lower {
		lower[t] = float64(t % 2)
	}
	column := func(v *Node) *Node { return BroadcastToDims(ExpandAxes(v, 1), pairs, s.sets) }
	powers, l := nodes[powersName], s.byPower(logLikelihood)
	steps := Sub(Slice(powers, AxisRangeToEnd(1)), Slice(powers, AxisRange(0, pairs)))
	gain := Sub(Slice(l, AxisRange(0, pairs)), Slice(l, AxisRangeToEnd(1)))
	probability := compute.Finite(Exp(MinScalar(Mul(column(steps), gain), 0)))
	tried := Equal(column(ConvertDType(Const(g, lower), s.dtype)), BroadcastToDims(parity, pairs, s.sets))
	probability = Where(tried, probability, ZerosLike(probability))
	down := LessThan(rng.Uniform(s.dtype, pairs, s.sets), probability) // swaps with the power before
	none := Zeros(g, shapes.Make(s.dtype, 1, s.sets))
	up := rowsThen(ConvertDType(down, s.dtype), 1, none) // and with the next

	next = compute.Nodes{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		x := s.byPower(all[name])
		dims := append([]int{pairs}, x.Shape().Dimensions[1:]...)
		takes := func(which *Node) *Node {
			return BroadcastToDims(Reshape(which, append(dims[:2:2], slices.Repeat([]int{1}, len(dims)-2)...)...), dims...)
		}
		here := Slice(x, AxisRangeToEnd(1))
		before := Slice(x, AxisRange(0, pairs))
		after := rowsThen(x, 2, Slice(x, AxisRange(pairs)))
		x = Where(takes(down), before, Where(takes(GreaterThan(up, ZerosLike(up))), after, here))
		next[name] = Reshape(x, append([]int{s.replicas()}, dims[2:]...)...)
	}
	return next, ReduceMean(probability, 1)
}

// rowsThen returns the rows of x from row `from` on, followed by the rows of last. x may have no row left.
func rowsThen(x *Node, from int, last *Node) *Node {
	if x.Shape().Dim(0) == from { // XLA has no empty slices
		return last
	}
	return Concatenate([]*Node{Slice(x, AxisRangeToEnd(from)), last}, 0)
}

// byPower reshapes x, [K R, ...], to [K, R, ...]: an axis for the powers and one for the sets.
func (s *sweep) byPower(x *Node) *Node {
	dims := x.Shape().Dimensions
	return Reshape(x, append([]int{dims[0] / s.sets, s.sets}, dims[1:]...)...)
}

// each repeats x, [T - 1, ...], for each set: [M, ...].
func (s *sweep) each(x *Node) *Node {
	dims := x.Shape().Dimensions
	all := BroadcastToDims(ExpandAxes(x, 1), append([]int{dims[0], s.sets}, dims[1:]...)...)
	return Reshape(all, append([]int{s.replicas()}, dims[1:]...)...)
}

// replicaPowers returns the replicas' powers, [M].
func (s *sweep) replicaPowers(nodes compute.Nodes) *Node {
	return s.each(Slice(nodes[powersName], AxisRangeToEnd(1)))
}

// target is log p(phi) + power log p(y | phi), each replica with its power, as a function of phi over its scales.
func (s *sweep) target(nodes compute.Nodes, scale *Node) powered {
	return powered{sweep: s, nodes: nodes, power: s.replicaPowers(nodes), scale: scale}
}

// powered is a target whose replicas have powers, [M], and scales, [M, D], of their own. If the node at is set, the
// log-likelihoods there, and the gradients if the kernel carries them, are known.
type powered struct {
	sweep                       *sweep
	nodes                       compute.Nodes
	power, scale                *Node
	at, logLikelihood, gradient *Node
}

// LogDensity implements density.Target.
func (p powered) LogDensity(z *graph.Node) *graph.Node {
	phi, target := Mul(z, p.scale), p.sweep.factored(p.nodes)
	logLikelihood := p.logLikelihood
	if z != p.at || logLikelihood == nil {
		logLikelihood = target.LogLikelihood(phi)
	}
	return compute.Gate(Add(target.LogPrior(phi), Mul(p.power, logLikelihood)))
}

// Gradient implements density.Target.
func (p powered) Gradient(z *graph.Node) (logDensity, gradient *graph.Node) {
	phi := Mul(z, p.scale)
	logLikelihood, ofLikelihood := p.logLikelihood, p.gradient
	target := p.sweep.factored(p.nodes)
	prior, ofPrior := density.Func(target.LogPrior).Gradient(phi)
	if z != p.at || ofLikelihood == nil {
		logLikelihood, ofLikelihood = likelihoodGradient(target, phi, prior, ofPrior)
	}
	power := BroadcastToShape(ExpandAxes(p.power, 1), phi.Shape())
	logDensity = Add(prior, Mul(p.power, logLikelihood))
	gradient = Add(ofPrior, Mul(power, ofLikelihood))
	return compute.Gate(logDensity), Mul(gradient, p.scale)
}

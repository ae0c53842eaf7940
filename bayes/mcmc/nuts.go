package mcmc

import (
	"cmp"
	"math"

	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
)

var (
	_ Tunable  = NUTS{}
	_ Stateful = NUTS{}
)

// NUTS is the no-U-turn sampler (Hoffman and Gelman 2014): Hamiltonian Monte Carlo that follows each trajectory until
// it begins to turn back, from where a longer one would only come nearer to the start again. So only the step size is
// left to choose. It is the variant of Betancourt 2017, appendix A, as in Stan and PyMC. It leaves the target
// invariant.
//
// A transition draws a momentum p and grows a trajectory of leapfrog steps, whose points are the leaves of a balanced
// binary tree. It grows by doubling: a fair coin says at which end, that is in which direction of time, a subtree as
// long as the whole is added. Within a subtree a leaf is drawn with probability proportional to exp(-energy), its
// weight; the subtree's leaf replaces the tree's with probability min(1, weight of the subtree / weight of the tree),
// which favours distant leaves. A subtree in which any subtree turns is discarded and ends the transition; a turn of
// the whole tree ends it too, but keeps the subtree. A trajectory turns (Betancourt 2017, appendix A.4.2) if the
// momentum of one of its ends points against rho, the sum of its momenta. As in Stan since 2.21 two more trajectories
// are checked for each tree: its left half with the first leaf of the right half, and the last leaf of the left half
// with its right half. Without them a step size in resonance with a period of the target can miss every turn.
//
// A tree also ends at depth MaxDepth, and if the trajectory diverges: its energy is not finite, or is more than 1000
// above the energy at the start. Then the subtree is discarded.
//
// Every Move is one leapfrog step of every particle, that is one gradient. A particle whose tree has ended begins a new
// one at its next move, independently of the others: none waits for the longest tree. Phi is a draw only where
// Info.Complete is 1: else it is the leaf chosen so far. To find the turns of subtrees, one leaf for each depth of the
// growing subtree is stored, not the whole tree (Phan, Pradhan and Jankowiak 2019). The state is 3 MaxDepth + 9 tensors
// [J, D]; a move needs it twice, and the gradient's memory.
//
// Info: Acceptance is the mean over the leaves of min(1, exp(-energy error)); Accepted is 1 where Phi has changed. A
// particle that begins where the density is 0 takes the first leaf with a positive one.
type NUTS struct {
	StepSize float64 `json:"step_size"` // of the leapfrog steps; 0: a warm-up chooses
	MaxDepth int     `json:"max_depth"` // a tree has at most 2^MaxDepth - 1 leaves beside its start; default 10
	// Acceptance is the mean acceptance at which a warm-up aims as it chooses the step size, below 1; default 0.8. Nearer
	// to 1 the steps are shorter, and follow narrow regions in which longer ones diverge (Stan's adapt_delta). Only with
	// StepSize 0.
	Acceptance float64 `json:"acceptance,omitempty"`
}

// maxDepthLimit is the largest MaxDepth: counts of up to 2^20 leaves are exact in float32, and transitions stay
// bounded.
const maxDepthLimit = 20

// maxEnergyError is the rise in energy beyond which a trajectory counts as divergent, as in Stan.
const maxEnergyError = 1000

// Traits implements Kernel. Transitions are in detailed balance. A tree is built with the same probability from any of
// its leaves. Take two leaves whose smallest common subtree has weight a + b, with b the weight of its later half. The
// draw within that subtree goes from one leaf to the other with probability min(1/a, 1/b) times the other's weight, and
// larger trees keep either leaf with the same probability.
func (k NUTS) Traits() Traits { return Traits{Carries: CarriesGradient, Exact: true, Reversible: true} }

// Check implements Kernel.
func (k NUTS) Check(int) error {
	return limits.Fill("mcmc: NUTS", append(limitsOf(&k.StepSize, &k.Acceptance),
		limits.Int("MaxDepth", &k.MaxDepth, 10).Between(1, maxDepthLimit))...)
}

// Tune implements Tunable: Acceptance along a trajectory, by default 0.8. For costs alone 0.6 is best (Hoffman and
// Gelman 2014, figure 6: 0.45 to 0.8 are much the same). Targets with narrow regions need a higher acceptance, that is
// shorter steps.
func (k NUTS) Tune() (stepSize, acceptance float64) {
	return k.StepSize, cmp.Or(k.Acceptance, defaultAcceptance)
}

func (k NUTS) maxDepth() int { return cmp.Or(k.MaxDepth, 10) }

// Start implements Stateful: every particle has a momentum and begins a transition at its first move.
func (k NUTS) Start(rng random.Stream, s State, _ density.Target) State {
	t := newTree(s.Phi, k.maxDepth())
	t.front = end{s.Phi, normal(rng.Named("momentum"), s.Phi), s.Gradient}
	s.Auxiliary = t.pack()
	return s
}

// Move implements Kernel: the tree of each particle grows by one leaf. The methods below are in the order of their
// calls; s is the leaf that the tree has chosen so far, at the beginning of a transition its start.
func (k NUTS) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	t := unpackTree(s.Auxiliary, k.maxDepth())
	coin, draw, accept := logUniforms(rng.Named("choices"), s)

	first, begins := t.chooseEnd(coin)
	kinetic := Kinetic(t.front.momentum)
	t.beginTransition(begins, kinetic, s)
	leaf := t.step(target, tuning.Step(s.Phi, k.StepSize), tuning)
	energyError, divergent := t.weigh(leaf, begins, s)
	t.drawFromSubtree(leaf, energyError, first, draw)
	turn := t.lookForTurns(leaf, first)
	next, joins, complete := t.join(turn, divergent, first, accept, k.maxDepth(), s)
	t.goOn(leaf, next, joins, complete, rng.Named("momentum"))

	next.Auxiliary = t.pack()
	return next, Info{
		Complete:   ConvertDType(complete, s.Phi.DType()),
		Acceptance: Div(t.acceptance, t.gradients),
		Accepted:   t.moved,
		NonFinite:  ConvertDType(Not(IsFinite(leaf.energy)), s.Phi.DType()),
		Divergent:  ConvertDType(divergent, s.Phi.DType()),
		Energy:     t.energy,
		Length:     t.gradients,
	}
}

// logUniforms returns the logarithms of a move's three random choices, [J] each. They come from one logarithm, as XLA
// would otherwise compile the random number generator into several loops.
func logUniforms(rng random.Stream, s State) (coin, draw, accept *Node) {
	choices := Log(rng.Uniform(s.Phi.DType(), s.Phi.Shape().Dim(0), 3))
	column := func(i int) *Node { return Squeeze(Slice(choices, AxisRange(), AxisElem(i)), 1) }
	return column(0), column(1), column(2)
}

// chooseEnd says for which particles a subtree begins (first, bool [J]), and for which a transition does (begins, bool
// [J]). A subtree begins at either end of the tree with probability 1/2, which is then the front. A transition begins
// with a tree of one leaf, which is the front and the back.
func (t *tree) chooseEnd(logCoin *Node) (first, begins *Node) {
	first = Equal(t.leaf, ZerosLike(t.leaf))
	begins = And(first, Equal(t.depth, ZerosLike(t.depth)))
	turned := And(first, LessThan(logCoin, fillAs(t.leaf, -math.Ln2)))
	masks := computedOnce(t.leaf.DType(), first, begins, turned, And(turned, Not(begins)), Or(turned, begins))
	first, begins, turned = masks[0], masks[1], masks[2]
	t.front, t.back = t.back.where(masks[3], t.front), t.front.where(masks[4], t.back)
	t.direction = Where(turned, Neg(t.direction), t.direction)
	t.backDot = Where(turned, t.frontDot, t.backDot)
	return first, begins
}

// beginTransition resets the tree to the start alone, with the given kinetic energy, for particles that begin a
// transition. The weight of the start is 1, the unit of the others.
func (t *tree) beginTransition(begins, kinetic *Node, start State) {
	t.backDot = Where(begins, MulScalar(kinetic, 2), t.backDot)
	t.sum = Choose(begins, t.front.momentum, t.sum)
	t.acceptance = Where(begins, ZerosLike(t.acceptance), t.acceptance)
	t.gradients = Where(begins, ZerosLike(t.gradients), t.gradients)
	t.moved = Where(begins, ZerosLike(t.moved), t.moved)
	t.energy = Where(begins, Sub(kinetic, start.LogDensity), t.energy)
	t.logWeight = Where(begins, ZerosLike(t.logWeight), t.logWeight)
}

// newLeaf is the leaf that a move adds.
type newLeaf struct {
	State
	momentum *Node // [J, D]
	kinetic  *Node // energy of the momentum, [J]
	energy   *Node // [J]
	previous *Node // momentum of the leaf before it, the front until now, [J, D]
}

// step computes the new leaf, one leapfrog step from the front.
func (t *tree) step(target density.Target, stepSize *Node, tuning Tuning) newLeaf {
	front := State{Phi: t.front.phi, Gradient: t.front.gradient}
	if stepSize.Rank() == 2 {
		stepSize = Squeeze(stepSize, 1)
	}
	signed := Mul(t.direction, BroadcastToShape(stepSize, t.direction.Shape()))
	leaf := newLeaf{previous: t.front.momentum}
	leaf.State, leaf.momentum = Leapfrog(target, front, t.front.momentum, signed, tuning)
	leaf.kinetic = Kinetic(leaf.momentum)
	leaf.energy = Sub(leaf.kinetic, leaf.LogDensity)
	return leaf
}

// weigh computes the energy of the new leaf minus the energy at the start, [J], and where the trajectory diverges, bool
// [J]. Minus this difference is the leaf's log-weight, relative to the start. If the density at the start is 0, weights
// are relative to the first leaf instead, and the weight of the start is 0.
func (t *tree) weigh(leaf newLeaf, begins *Node, start State) (energyError, divergent *Node) {
	lost := And(begins, Not(IsFinite(start.LogDensity)))
	t.energy = Where(lost, leaf.energy, t.energy)
	t.logWeight = Where(lost, fillAs(t.logWeight, math.Inf(-1)), t.logWeight)
	energyError = Sub(leaf.energy, t.energy)
	finite := IsFinite(energyError)
	divergent = Not(And(finite, LessOrEqual(energyError, ConstAs(energyError, maxEnergyError))))
	probability := Exp(MinScalar(Neg(energyError), 0))
	t.acceptance = Add(t.acceptance, Where(finite, probability, ZerosLike(probability)))
	t.gradients = AddScalar(t.gradients, 1)
	return energyError, divergent
}

// drawFromSubtree replaces the leaf that the subtree has chosen so far by the new one, with probability (weight of the
// new leaf) / (sum of the weights so far, its own included). So in the end each leaf has been chosen with a probability
// proportional to its weight, exp(-energy), though none but the chosen one is stored.
func (t *tree) drawFromSubtree(leaf newLeaf, energyError, first, logUniform *Node) {
	t.subtree.logWeight = Where(first, Neg(energyError), logAddExp(t.subtree.logWeight, Neg(energyError)))
	drawn := computedOnce(energyError.DType(), LessThan(logUniform, Sub(Neg(energyError), t.subtree.logWeight)))[0]
	t.subtree.phi = Choose(drawn, leaf.Phi, t.subtree.phi)
	t.subtree.gradient = Choose(drawn, leaf.Gradient, t.subtree.gradient)
	t.subtree.logDensity = Where(drawn, leaf.LogDensity, t.subtree.logDensity)
}

// turn holds the results of the checks for turns after a new leaf.
type turn struct {
	turns                   // of the subtree's own subtrees
	onward            *Node // bool [J]: the whole does not turn
	frontDot, backDot *Node // dot products of the ends' momenta with the sum of all, [J]
}

// lookForTurns adds the new leaf's momentum to the subtree's sum, and checks for turns within the subtree, and of the
// whole tree with it.
func (t *tree) lookForTurns(leaf newLeaf, first *Node) turn {
	before := Choose(first, ZerosLike(t.subtree.sum), t.subtree.sum)
	t.subtree.sum = Add(before, leaf.momentum)
	found := turn{turns: t.checkpoints.visit(ConvertDType(t.leaf, dtypes.Int32), visited{
		previous: leaf.previous, momentum: leaf.momentum, before: before, sum: t.subtree.sum,
		squared: MulScalar(leaf.kinetic, 2),
	})}
	found.backDot = Add(t.backDot, dot(t.back.momentum, t.subtree.sum))
	found.frontDot = Add(dot(leaf.momentum, t.sum), found.momentumDotSum)
	found.onward = And(isPositive(found.backDot), isPositive(found.frontDot))
	// The tree with the subtree's first leaf is one of the two further trajectories that span two halves.
	t.firstTurns = Where(first, ConvertDType(Not(found.onward), t.leaf.DType()), t.firstTurns)
	return found
}

// join adds complete subtrees to the tree (joins, bool [J]): the subtree's leaf replaces the tree's with probability
// min(1, weight of the subtree / weight of the tree). It returns the chosen leaf, and where the transition is complete,
// bool [J]: if the subtree turns or diverges, and is discarded, if the whole tree turns, or at the greatest depth.
func (t *tree) join(
	found turn, divergent, first, logUniform *Node, maxDepth int, chosen State,
) (next State, joins, complete *Node) {
	dtype := t.leaf.DType()
	ends := Or(divergent, found.within)
	depth := ConvertDType(t.depth, dtypes.Int32)
	size := BitwiseShiftLeft(OnesLike(depth), depth) // leaves of a complete subtree, 2^depth
	joins = And(Not(ends), Equal(ConvertDType(AddScalar(t.leaf, 1), dtypes.Int32), size))
	accepted := And(joins, LessThan(logUniform, Sub(t.subtree.logWeight, t.logWeight)))
	onward := And(And(found.onward, Equal(t.firstTurns, ZerosLike(t.firstTurns))), Or(first, found.innerOnward))
	deepest := Equal(t.depth, fillAs(t.depth, float64(maxDepth-1)))
	complete = Or(ends, And(joins, Or(Not(onward), deepest)))
	masks := computedOnce(dtype, joins, accepted, complete)
	joins, accepted, complete = masks[0], masks[1], masks[2]
	next = State{
		Phi:        Choose(accepted, t.subtree.phi, chosen.Phi),
		Gradient:   Choose(accepted, t.subtree.gradient, chosen.Gradient),
		LogDensity: Where(accepted, t.subtree.logDensity, chosen.LogDensity),
	}
	t.moved = Where(accepted, OnesLike(t.moved), t.moved)
	t.logWeight = Where(joins, logAddExp(t.logWeight, t.subtree.logWeight), t.logWeight)
	t.sum = Choose(joins, Add(t.sum, t.subtree.sum), t.sum)
	t.frontDot, t.backDot = Where(joins, found.frontDot, t.frontDot), Where(joins, found.backDot, t.backDot)
	return next, joins, complete
}

// goOn makes the new leaf the front, where the tree grows next. If the transition is complete, the front is instead the
// chosen leaf with a fresh momentum, at which the next transition begins. The momentum is drawn at the end of a move
// for speed: see HMC.
func (t *tree) goOn(leaf newLeaf, next State, joins, complete *Node, rng random.Stream) {
	begin := end{next.Phi, normal(rng, leaf.momentum), next.Gradient}
	t.front = begin.where(complete, end{leaf.Phi, leaf.momentum, leaf.Gradient})
	t.leaf = Where(Or(complete, joins), ZerosLike(t.leaf), AddScalar(t.leaf, 1))
	t.depth = Where(complete, ZerosLike(t.depth), Where(joins, AddScalar(t.depth, 1), t.depth))
}

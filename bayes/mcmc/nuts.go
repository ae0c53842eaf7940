package mcmc

import (
	"fmt"
	"math"

	"gobnn/bayes/compute/random"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
)

var (
	_ Tunable  = NUTS{}
	_ Stateful = NUTS{}
	_ Exact    = NUTS{}
)

// NUTS is the no-U-turn sampler (Hoffman and Gelman 2014): Hamiltonian Monte Carlo that follows each trajectory until
// it begins to turn back, so that only the step size is left to choose. It is the variant of Betancourt 2017, appendix
// A, that Stan and PyMC run. It leaves the target invariant.
//
// A transition draws a momentum p and grows a trajectory of leapfrog steps, a balanced binary tree, by doubling: a fair
// coin says at which end a subtree as long as the whole is added. Within a subtree a leaf is drawn with probability
// proportional to exp(-energy); the subtree's leaf replaces the tree's with probability min(1, weight of the subtree /
// weight of the tree), which favours what is far. A subtree in which any subtree turns is thrown away and ends the
// transition; a turn of the whole tree ends it too, but the subtree counts. A trajectory turns (Betancourt 2017,
// appendix A.4.2) if the momentum of one of its ends points against rho, the sum of its momenta. As in Stan since 2.21
// two more trajectories are looked at for each tree: its left half with the first leaf of the right half, and the last
// leaf of the left half with its right half. Without them a step size in resonance with a period of the target can pass
// each turn unseen.
//
// A tree also ends at depth MaxDepth, and where the trajectory diverges: where the energy is not finite, or larger than
// at the start by more than 1000. Then the subtree is thrown away.
//
// Every Move is one leapfrog step of every particle, that is one gradient. A particle whose tree has ended begins a new
// one at its next move, whatever the others do: there is no waiting for the longest tree. Phi is a draw only where
// Info.Complete is 1: else it is the leaf that the tree has chosen so far. No tree is kept to find the turns of its
// subtrees, only some leaves of the subtree that is growing, one for each of its depths (Phan, Pradhan and Jankowiak
// 2019). The state is 3 MaxDepth + 9 tensors [J, D]; a move needs it twice, and what the gradient takes.
//
// Info: Acceptance is the mean over the leaves of min(1, exp(-energy error)), EnergyError that of the last leaf,
// Accepted is 1 where Phi has changed. A particle that begins where there is no density takes the first leaf that has
// one.
type NUTS struct {
	StepSize float64 `json:"step_size"` // of the leapfrog steps; 0: a warm-up chooses
	MaxDepth int     `json:"max_depth"` // a tree has at most 2^MaxDepth - 1 leaves beside its start; default 10
}

// maxDepthLimit keeps counts of leaves exact in float32, and a transition finite in practice.
const maxDepthLimit = 20

// maxEnergyError is where a trajectory counts as divergent, as in Stan.
const maxEnergyError = 1000

// Carries implements Kernel: the gradient.
func (k NUTS) Carries() Carries { return CarriesGradient }

// UsesTarget implements Kernel.
func (k NUTS) UsesTarget() bool { return true }

// Exact implements Exact: it draws from each trajectory in detailed balance.
func (k NUTS) Exact() bool { return true }

// Check implements Kernel.
func (k NUTS) Check(int) error {
	if k.MaxDepth < 0 || k.MaxDepth > maxDepthLimit {
		return fmt.Errorf("mcmc: NUTS.MaxDepth is %d: it must be from 1 to %d (0: the default, 10)",
			k.MaxDepth, maxDepthLimit)
	}
	return nonNegative("NUTS.StepSize", zeroWarmUp, k.StepSize)
}

// Tune implements Tunable: 0.8 of the mean acceptance along a trajectory, between the 0.6 that is best for costs alone
// (Hoffman and Gelman 2014, figure 6: 0.45 to 0.8 are much the same) and what hard geometries need.
func (k NUTS) Tune() (stepSize, acceptance float64) { return k.StepSize, 0.8 }

func (k NUTS) maxDepth() int {
	if k.MaxDepth == 0 {
		return 10
	}
	return k.MaxDepth
}

// Start implements Stateful: every particle is about to begin a transition, and has its momentum.
func (k NUTS) Start(rng random.Stream, s State) State {
	t := newTree(s.Phi, k.maxDepth())
	t.front = end{s.Phi, normal(rng.Named("momentum"), s.Phi), s.Gradient}
	s.Own = t.pack()
	return s
}

// Move implements Kernel: the tree of each particle grows by one leaf. What happens is in the methods below, in the
// order of their calls; s is the leaf that the tree has chosen so far, and at the beginning of a transition its start.
func (k NUTS) Move(rng random.Stream, s State, target Target, tuning Tuning) (State, Info) {
	t := unpackTree(s.Own, k.maxDepth())
	coin, draw, accept := logUniforms(rng.Named("choices"), s)

	first, begins := t.chooseEnd(coin)
	kinetic := Kinetic(t.front.momentum)
	t.beginTransition(begins, kinetic, s)
	leaf := t.step(target, tuning.Step(s.Phi, k.StepSize), tuning.Scale)
	energyError, divergent := t.weigh(leaf, begins, s)
	t.drawFromSubtree(leaf, energyError, first, draw)
	turn := t.lookForTurns(leaf, first)
	next, joins, complete := t.join(turn, divergent, first, accept, k.maxDepth(), s)
	t.goOn(leaf, next, joins, complete, rng.Named("momentum"))

	next.Own = t.pack()
	return next, Info{
		Complete:    ConvertDType(complete, s.Phi.DType()),
		Acceptance:  Div(t.acceptance, t.gradients),
		Accepted:    t.moved,
		NonFinite:   ConvertDType(Not(IsFinite(leaf.energy)), s.Phi.DType()),
		Divergent:   ConvertDType(divergent, s.Phi.DType()),
		EnergyError: Where(IsFinite(energyError), energyError, fillAs(energyError, math.Inf(1))),
		Energy:      t.energy,
		Length:      t.gradients,
	}
}

// logUniforms are the logarithms of a move's three random choices, [J] each. It is one logarithm of all: each loop that
// the compiler makes would else have the generator of random numbers anew.
func logUniforms(rng random.Stream, s State) (coin, draw, accept *Node) {
	choices := Log(rng.Uniform(s.Phi.DType(), s.Phi.Shape().Dim(0), 3))
	column := func(i int) *Node { return Squeeze(Slice(choices, AxisRange(), AxisElem(i)), 1) }
	return column(0), column(1), column(2)
}

// chooseEnd says where a subtree begins (first, bool [J]), and where a transition does (begins, bool [J]). A subtree
// begins at either end of the tree with probability 1/2: that end is the front from now on. A transition begins with a
// tree of one leaf, which is the front and the back.
func (t *tree) chooseEnd(logCoin *Node) (first, begins *Node) {
	first = Equal(t.leaf, ZerosLike(t.leaf))
	begins = And(first, Equal(t.depth, ZerosLike(t.depth)))
	turned := And(first, LessThan(logCoin, fillAs(t.leaf, -math.Ln2)))
	masks := settle(t.leaf.DType(), first, begins, turned, And(turned, Not(begins)), Or(turned, begins))
	first, begins, turned = masks[0], masks[1], masks[2]
	t.front, t.back = t.back.where(masks[3], t.front), t.front.where(masks[4], t.back)
	t.direction = Where(turned, Neg(t.direction), t.direction)
	t.backDot = Where(turned, t.frontDot, t.backDot)
	return first, begins
}

// beginTransition makes a tree of the start alone, whose momentum has the given kinetic energy, where a transition
// begins. The weight of the start is 1, and all others are in units of it.
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
	previous *Node // momentum of the leaf before it, which was the front, [J, D]
}

// step makes the new leaf, one leapfrog step on from the front.
func (t *tree) step(target Target, stepSize, scale *Node) newLeaf {
	front := State{Phi: t.front.phi, Gradient: t.front.gradient}
	if stepSize.Rank() == 2 {
		stepSize = Squeeze(stepSize, 1)
	}
	signed := Mul(t.direction, BroadcastToShape(stepSize, t.direction.Shape()))
	leaf := newLeaf{previous: t.front.momentum}
	leaf.State, leaf.momentum = Leapfrog(target, front, t.front.momentum, signed, scale)
	leaf.kinetic = Kinetic(leaf.momentum)
	leaf.energy = Sub(leaf.kinetic, leaf.LogDensity)
	return leaf
}

// weigh finds the new leaf's energy less that of the start, whose negative is its log-weight, [J], and says where that
// diverges, bool [J]. Where the start has no density, weights are relative to its first leaf instead, and its own is 0.
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

// drawFromSubtree draws the new leaf from its subtree, in place of the one drawn before, with probability
// exp(-energy) / sum of exp(-energy) so far.
func (t *tree) drawFromSubtree(leaf newLeaf, energyError, first, logUniform *Node) {
	t.subtree.logWeight = Where(first, Neg(energyError), logAddExp(t.subtree.logWeight, Neg(energyError)))
	drawn := settle(energyError.DType(), LessThan(logUniform, Sub(Neg(energyError), t.subtree.logWeight)))[0]
	t.subtree.phi = Choose(drawn, leaf.Phi, t.subtree.phi)
	t.subtree.gradient = Choose(drawn, leaf.Gradient, t.subtree.gradient)
	t.subtree.logDensity = Where(drawn, leaf.LogDensity, t.subtree.logDensity)
}

// turn is what a new leaf says of the tree with the subtree so far.
type turn struct {
	turns                   // of the subtree's own subtrees
	onward            *Node // bool [J]: the whole does not turn
	frontDot, backDot *Node // of its ends' momenta with the sum of all, [J]
}

// lookForTurns adds the new leaf's momentum to the subtree's, and looks for turns within the subtree, and of the whole
// tree with the subtree.
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
	// The tree with the subtree's first leaf alone is one of the two that span two halves.
	t.firstTurns = Where(first, ConvertDType(Not(found.onward), t.leaf.DType()), t.firstTurns)
	return found
}

// join lets a whole subtree join the tree (joins, bool [J]): its leaf replaces the one that the tree has chosen with
// probability min(1, weight of the subtree / weight of the tree). It gives what is chosen now, and says where the
// transition is complete, bool [J]: where the subtree turns or diverges, and is thrown away, where the whole turns with
// it, and at the greatest depth.
func (t *tree) join(
	found turn, divergent, first, logUniform *Node, maxDepth int, chosen State,
) (next State, joins, complete *Node) {
	dtype := t.leaf.DType()
	ends := Or(divergent, found.within)
	depth := ConvertDType(t.depth, dtypes.Int32)
	size := BitwiseShiftLeft(OnesLike(depth), depth) // leaves of a whole subtree, 2^depth
	joins = And(Not(ends), Equal(ConvertDType(AddScalar(t.leaf, 1), dtypes.Int32), size))
	accepted := And(joins, LessThan(logUniform, Sub(t.subtree.logWeight, t.logWeight)))
	onward := And(And(found.onward, Equal(t.firstTurns, ZerosLike(t.firstTurns))), Or(first, found.innerOnward))
	deepest := Equal(t.depth, fillAs(t.depth, float64(maxDepth-1)))
	complete = Or(ends, And(joins, Or(Not(onward), deepest)))
	masks := settle(dtype, joins, accepted, complete)
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

// goOn makes the new leaf the front, or, where the transition is complete, what it has chosen, with a fresh momentum:
// there the next transition begins. The momentum is drawn here, at the end of the move, and not where it is used: one
// loop of the compiled move has the generator then, and not all that follow from the momentum.
func (t *tree) goOn(leaf newLeaf, next State, joins, complete *Node, rng random.Stream) {
	begin := end{next.Phi, normal(rng, leaf.momentum), next.Gradient}
	t.front = begin.where(complete, end{leaf.Phi, leaf.momentum, leaf.Gradient})
	t.leaf = Where(Or(complete, joins), ZerosLike(t.leaf), AddScalar(t.leaf, 1))
	t.depth = Where(complete, ZerosLike(t.depth), Where(joins, AddScalar(t.depth, 1), t.depth))
}

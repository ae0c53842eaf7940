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

// NUTS is the no-U-turn sampler (Hoffman and Gelman 2014): Hamiltonian Monte Carlo that follows each trajectory until it begins to turn back, so
// that only the step size is left to choose. It is the variant of Betancourt 2017, appendix A, that Stan and PyMC run. It leaves the target
// invariant.
//
// A transition draws a momentum p and grows a trajectory of leapfrog steps, a balanced binary tree, by doubling: a fair coin says at which end
// a subtree as long as the whole is added. Within a subtree a leaf is drawn with probability proportional to exp(-energy); the subtree's leaf
// replaces the tree's with probability min(1, weight of the subtree / weight of the tree), which favours what is far. A subtree in which any subtree turns is
// thrown away and ends the transition; a turn of the whole tree ends it too, but the subtree counts. A trajectory turns (Betancourt 2017,
// appendix A.4.2) if the momentum of one of its ends points against rho, the sum of its momenta. As in Stan since 2.21 two more trajectories are looked at
// for each tree: its left half with the first leaf of the right half, and the last leaf of the left half with its right half. Without them a
// step size in resonance with a period of the target can pass each turn unseen.
//
// A tree also ends at depth MaxDepth, and where the trajectory diverges: where the energy is not finite, or larger than at the start by more
// than 1000. Then the subtree is thrown away.
//
// Every Move is one leapfrog step of every particle, that is one gradient. A particle whose tree has ended begins a new one at its next move, whatever the others
// do: there is no waiting for the longest tree. Phi is a draw only where Info.Complete is 1: else it is the leaf that the
// tree has chosen so far. No tree is kept to find the turns of its subtrees, only some leaves of the subtree that is growing, one for each of its depths (Phan,
// Pradhan and Jankowiak 2019). The state is 3 MaxDepth + 9 tensors [J, D]; a move needs it
// twice, and what the gradient takes.
//
// Info: Acceptance is the mean over the leaves of min(1, exp(-energy error)), EnergyError that of the last leaf, Accepted is 1 where
// Phi has changed. A particle that begins where there is no density takes the first leaf that has one.
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
		return fmt.Errorf("mcmc: NUTS.MaxDepth is %d: it must be from 1 to %d (0: the default, 10)", k.MaxDepth, maxDepthLimit)
	}
	return nonNegative("NUTS.StepSize", zeroWarmUp, k.StepSize)
}

// Tune implements Tunable: 0.8 of the mean acceptance along a trajectory, between the 0.6 that is best for costs alone (Hoffman and Gelman 2014, figure 6:
// 0.45 to 0.8 are much the same) and what hard geometries need.
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

// Move implements Kernel.
func (k NUTS) Move(rng random.Stream, s State, target Target, tuning Tuning) (State, Info) {
	dtype, particles := s.Phi.DType(), s.Phi.Shape().Dim(0)
	t := unpackTree(s.Own, k.maxDepth())
	// One logarithm of all, since each loop that the compiler makes would else have the generator of random numbers anew.
	choices := Log(rng.Named("choices").Uniform(dtype, particles, 3))
	logUniform := func(i int) *Node { return Squeeze(Slice(choices, AxisRange(), AxisElem(i)), 1) }

	// A subtree begins at either end with probability 1/2. A transition begins with a tree of one leaf, the front.
	first := Equal(t.leaf, ZerosLike(t.leaf))
	begins := And(first, Equal(t.depth, ZerosLike(t.depth)))
	turned := And(first, LessThan(logUniform(0), fillAs(t.leaf, -math.Ln2)))
	masks := settle(dtype, first, begins, turned, And(turned, Not(begins)), Or(turned, begins))
	first, begins, turned = masks[0], masks[1], masks[2]
	front := t.back.where(masks[3], t.front)
	back := t.front.where(masks[4], t.back)
	kinetic := Kinetic(front.momentum)
	t.direction = Where(turned, Neg(t.direction), t.direction)
	t.backDot = Where(begins, MulScalar(kinetic, 2), Where(turned, t.frontDot, t.backDot))
	t.sum = Choose(begins, front.momentum, t.sum)
	t.acceptance = Where(begins, ZerosLike(t.acceptance), t.acceptance)
	t.gradients = Where(begins, ZerosLike(t.gradients), t.gradients)
	t.moved = Where(begins, ZerosLike(t.moved), t.moved)

	// The new leaf.
	stepSize := Mul(t.direction, BroadcastToShape(tuning.Step(s.Phi, k.StepSize), t.direction.Shape()))
	leaf, p := Leapfrog(target, State{Phi: front.phi, Gradient: front.gradient}, front.momentum, stepSize, tuning.Scale)
	leafKinetic := Kinetic(p)
	energy := Sub(leafKinetic, leaf.LogDensity)

	// Its weight is relative to that of the start, or, where the start has none, to itself.
	lost := And(begins, Not(IsFinite(s.LogDensity)))
	t.energy = Where(begins, Sub(kinetic, s.LogDensity), t.energy)
	t.energy = Where(lost, energy, t.energy)
	t.logWeight = Where(begins, ZerosLike(t.logWeight), t.logWeight)
	t.logWeight = Where(lost, fillAs(t.logWeight, math.Inf(-1)), t.logWeight)
	energyError := Sub(energy, t.energy)
	finite := IsFinite(energyError)
	divergent := Not(And(finite, LessOrEqual(energyError, ConstAs(energyError, maxEnergyError))))
	probability := Exp(MinScalar(Neg(energyError), 0))
	t.acceptance = Add(t.acceptance, Where(finite, probability, ZerosLike(probability)))
	t.gradients = AddScalar(t.gradients, 1)

	// It is drawn from its subtree with probability exp(-energy) / sum of exp(-energy) so far.
	t.subtree.logWeight = Where(first, Neg(energyError), logAddExp(t.subtree.logWeight, Neg(energyError)))
	drawn := settle(dtype, LessThan(logUniform(1), Sub(Neg(energyError), t.subtree.logWeight)))[0]
	t.subtree.phi = Choose(drawn, leaf.Phi, t.subtree.phi)
	t.subtree.gradient = Choose(drawn, leaf.Gradient, t.subtree.gradient)
	t.subtree.logDensity = Where(drawn, leaf.LogDensity, t.subtree.logDensity)

	// Turns within the subtree, and of the whole tree with it.
	before := Choose(first, ZerosLike(t.subtree.sum), t.subtree.sum)
	t.subtree.sum = Add(before, p)
	turns := t.checkpoints.visit(ConvertDType(t.leaf, dtypes.Int32), visited{
		previous: front.momentum, momentum: p, before: before, sum: t.subtree.sum, squared: MulScalar(leafKinetic, 2),
	})
	backDot := Add(t.backDot, dot(back.momentum, t.subtree.sum))
	frontDot := Add(dot(p, t.sum), turns.momentumDotSum)
	onward := And(isPositive(backDot), isPositive(frontDot))
	t.firstTurns = Where(first, ConvertDType(Not(onward), dtype), t.firstTurns) // with the subtree's first leaf alone

	// A whole subtree joins the tree.
	ends := Or(divergent, turns.within)
	size := BitwiseShiftLeft(OnesLike(ConvertDType(t.depth, dtypes.Int32)), ConvertDType(t.depth, dtypes.Int32))
	joins := And(Not(ends), Equal(ConvertDType(AddScalar(t.leaf, 1), dtypes.Int32), size))
	accepted := And(joins, LessThan(logUniform(2), Sub(t.subtree.logWeight, t.logWeight)))
	onward = And(And(onward, Equal(t.firstTurns, ZerosLike(t.firstTurns))), Or(first, turns.innerOnward))
	deepest := Equal(t.depth, fillAs(t.depth, float64(k.maxDepth()-1)))
	complete := Or(ends, And(joins, Or(Not(onward), deepest)))
	masks = settle(dtype, joins, accepted, complete)
	joins, accepted, complete = masks[0], masks[1], masks[2]
	next := State{
		Phi:        Choose(accepted, t.subtree.phi, s.Phi),
		Gradient:   Choose(accepted, t.subtree.gradient, s.Gradient),
		LogDensity: Where(accepted, t.subtree.logDensity, s.LogDensity),
	}
	t.moved = Where(accepted, OnesLike(t.moved), t.moved)
	t.logWeight = Where(joins, logAddExp(t.logWeight, t.subtree.logWeight), t.logWeight)
	t.sum = Choose(joins, Add(t.sum, t.subtree.sum), t.sum)
	t.frontDot, t.backDot = Where(joins, frontDot, t.frontDot), Where(joins, backDot, t.backDot)

	// The next transition begins where this one ends, with a momentum that only one loop draws.
	t.front = end{next.Phi, normal(rng.Named("momentum"), p), next.Gradient}.where(complete, end{leaf.Phi, p, leaf.Gradient})
	t.back = back
	t.leaf = Where(Or(complete, joins), ZerosLike(t.leaf), AddScalar(t.leaf, 1))
	t.depth = Where(complete, ZerosLike(t.depth), Where(joins, AddScalar(t.depth, 1), t.depth))
	next.Own = t.pack()
	return next, Info{
		Complete:    ConvertDType(complete, dtype),
		Acceptance:  Div(t.acceptance, t.gradients),
		Accepted:    t.moved,
		NonFinite:   ConvertDType(Not(IsFinite(energy)), dtype),
		Divergent:   ConvertDType(divergent, dtype),
		EnergyError: Where(finite, energyError, fillAs(energyError, math.Inf(1))),
		Energy:      t.energy,
		Length:      t.gradients,
	}
}

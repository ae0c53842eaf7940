package mcmc

import (
	"fmt"

	"gobnn/bayes/compute"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// tree is the state of each particle's growing tree. Energies and log-weights are relative to the start of the
// transition.
type tree struct {
	// Numbers, [J].
	depth      *Node // of the tree; a subtree of 2^depth leaves is growing
	leaf       *Node // number of leaves of the subtree; 0 at depth 0: a transition begins
	direction  *Node // of time at the front, 1 or -1
	energy     *Node // at the start
	logWeight  *Node // of the tree: log of the sum of its leaves' weights
	acceptance *Node // sum of the acceptance probabilities of the leaves
	gradients  *Node // number of leaves of the transition
	moved      *Node // 1 if a leaf other than the start is chosen
	firstTurns *Node // 1 if the tree turned with the subtree's first leaf
	// Dot products of the two ends' momenta with sum. frontDot uses the momentum that the front had when the subtree
	// began.
	frontDot, backDot *Node

	// Vectors, [J, D]. The front is the end that grows, back the other: they swap if the direction changes. Turns do not
	// depend on the sign of the momenta, since all change sign together.
	front, back end
	sum         *Node // of the tree's momenta

	subtree struct {
		phi, gradient *Node // of the chosen leaf, [J, D]
		logDensity    *Node // of that leaf, [J]
		logWeight     *Node // [J]
		sum           *Node // of its momenta, [J, D]
	}
	checkpoints checkpoints
}

// end is a leaf at an end of the tree, each [J, D].
type end struct{ phi, momentum, gradient *Node }

// where is e for the particles with the condition, else other.
func (e end) where(condition *Node, other end) end {
	return end{
		phi:      Choose(condition, e.phi, other.phi),
		momentum: Choose(condition, e.momentum, other.momentum),
		gradient: Choose(condition, e.gradient, other.gradient),
	}
}

// newTree is the tree before a transition.
func newTree(phi *Node, maxDepth int) *tree {
	t := &tree{}
	g, dtype, particles := phi.Graph(), phi.DType(), phi.Shape().Dim(0)
	for _, number := range t.numbers() {
		*number = Zeros(g, shapes.Make(dtype, particles))
	}
	zero := ZerosLike(phi)
	for _, vector := range t.vectors() {
		*vector = zero
	}
	t.direction = OnesLike(t.direction)
	for range slots(maxDepth) {
		empty := Zeros(g, shapes.Make(dtype, particles, vectorsPerSlot*phi.Shape().Dim(1)))
		t.checkpoints.vectors = append(t.checkpoints.vectors, empty)
	}
	t.checkpoints.dots = Zeros(g, shapes.Make(dtype, particles, slots(maxDepth)*2))
	return t
}

func (t *tree) numbers() []**Node {
	return []**Node{
		&t.depth, &t.leaf, &t.direction, &t.energy, &t.logWeight, &t.acceptance, &t.gradients, &t.moved, &t.firstTurns,
		&t.frontDot, &t.backDot, &t.subtree.logDensity, &t.subtree.logWeight,
	}
}

func (t *tree) vectors() map[string]**Node {
	return map[string]**Node{
		"front_phi": &t.front.phi, "front_momentum": &t.front.momentum, "front_gradient": &t.front.gradient,
		"back_phi": &t.back.phi, "back_momentum": &t.back.momentum, "back_gradient": &t.back.gradient,
		"sum": &t.sum, "subtree_phi": &t.subtree.phi, "subtree_gradient": &t.subtree.gradient,
		"subtree_sum": &t.subtree.sum,
	}
}

// pack returns State.Auxiliary: the numbers are one tensor, [J, 13], since each tensor costs time in every call.
func (t *tree) pack() map[string]*Node {
	var numbers []*Node
	for _, n := range t.numbers() {
		numbers = append(numbers, *n)
	}
	own := map[string]*Node{"numbers": Stack(numbers, 1), "checkpoint_dots": t.checkpoints.dots}
	for slot, vectors := range t.checkpoints.vectors {
		own[checkpointName(slot)] = vectors
	}
	for name, vector := range t.vectors() {
		own[name] = *vector
	}
	return own
}

// unpackTree is the inverse of pack.
func unpackTree(own map[string]*Node, maxDepth int) *tree {
	t := &tree{}
	for i, n := range t.numbers() {
		*n = Squeeze(Slice(own["numbers"], AxisRange(), AxisElem(i)), 1)
	}
	for name, vector := range t.vectors() {
		*vector = own[name]
	}
	t.checkpoints.dots = own["checkpoint_dots"]
	for slot := range slots(maxDepth) {
		t.checkpoints.vectors = append(t.checkpoints.vectors, own[checkpointName(slot)])
	}
	return t
}

func checkpointName(slot int) string { return fmt.Sprintf("checkpoint_%02d", slot) }

// checkpoints stores the leaves of a growing subtree that are needed to find the turns of its own subtrees, without
// keeping the tree (Phan, Pradhan and Jankowiak 2019, iterative NUTS). Leaves count from 0. An even leaf m begins
// subtrees. It is stored in the slot whose number is the count of ones in the binary form of m/2. Only when its
// subtrees are complete does a later leaf take the slot. An odd leaf n ends the subtrees of 2, 4, ..., 2^t leaves,
// where t is the number of trailing ones of n. They begin at the leaves in t neighbouring slots, from the slot of leaf
// n-1 downwards. With eight leaves:
//
//	leaves                0   1   2   3   4   5   6   7
//	subtrees of two       0 - 1   2 - 3   4 - 5   6 - 7
//	subtrees of four      0 --------- 3   4 --------- 7
//	subtree of eight      0 ------------------------- 7
//
//	leaf   in binary   takes slot   slots 0, 1, 2 hold   ends the subtrees that begin at
//	  0       000          0            0  .  .
//	  1       001                       0  .  .          0, in slot 0
//	  2       010          1            0  2  .
//	  3       011                       0  2  .          2, in slot 1;  0, in slot 0
//	  4       100          1            0  4  .
//	  5       101                       0  4  .          4, in slot 1
//	  6       110          2            0  4  6
//	  7       111                       0  4  6          6, in slot 2;  4, in slot 1;  0, in slot 0
//
// The trajectory from leaf m to n has rho = S(n) - S(m-1), where S(n) is the sum of the momenta up to leaf n. So the
// checks need three vectors of m: p(m), S(m-1) and p(m-1).
type checkpoints struct {
	vectors []*Node // of each of K slots, [J, 3*D]; one tensor of all would be slower to update
	dots    *Node   // of each slot p(m).S(m-1) and p(m-1).S(m-2), [J, K*2]
}

const vectorsPerSlot = 3

// slots is the number of slots that the last subtree of a tree, of 2^(maxDepth-1) leaves, needs.
func slots(maxDepth int) int { return max(1, maxDepth-1) }

// visited is a new leaf n.
type visited struct {
	previous *Node // momentum of leaf n-1, or of the tree's end if n is 0, [J, D]
	momentum *Node // p(n), [J, D]
	before   *Node // S(n-1), [J, D]
	sum      *Node // S(n), [J, D]
	squared  *Node // p(n).p(n), [J]
}

// turns are the results of a new leaf's checks, [J].
type turns struct {
	within         *Node // bool: a subtree turns
	innerOnward    *Node // bool: the trajectory from the tree's end to the new leaf does not turn; no meaning if n is 0
	momentumDotSum *Node // p(n).S(n)
}

// visit stores the new leaf and checks for turns. leaf is n, int32 [J]. An even n ends no subtree, but begins the right
// half of one. The left half begins at the leaf in the slot before n's own, and the trajectory from there to n is
// checked here. The other trajectory across the halves, from the last leaf of the left one, is checked when the right
// half ends.
func (c *checkpoints) visit(leaf *Node, v visited) turns {
	particles, dim, slots := v.momentum.Shape().Dim(0), v.momentum.Shape().Dim(1), len(c.vectors)
	one := OnesLike(leaf)
	odd := Equal(BitwiseAnd(leaf, one), one)
	top := BitCount(BitwiseShiftRightLogical(leaf, one))
	trailing := BitCount(BitwiseShiftRightLogical(BitwiseXor(leaf, Add(leaf, one)), one)) // trailing ones
	// The slots to check: for an odd leaf the slots of the subtrees that it ends, for an even leaf the slot before its
	// own.
	low := Where(odd, Add(Sub(top, trailing), one), Sub(top, one))
	high := Where(odd, top, low)
	perSlot := func(x *Node) *Node { return BroadcastToDims(ExpandAxes(x, 1), particles, slots) }
	slot := Iota(leaf.Graph(), shapes.Make(dtypes.Int32, particles, slots), 1)

	pick := func(x *Node, at ...int) *Node { // x[:, :, at...]
		spec := []SliceAxisSpec{AxisRange(), AxisRange()}
		for _, i := range at {
			spec = append(spec, AxisElem(i))
		}
		return Reshape(Slice(x, spec...), particles, slots)
	}
	dots := Reshape(c.dots, particles, slots, 2)
	var withSum, withMomentum []*Node // [J, 3]
	for _, vectors := range c.vectors {
		vectors = Reshape(vectors, particles, vectorsPerSlot, dim)
		withSum = append(withSum, Einsum("jvd,jd->jv", vectors, v.sum))
		withMomentum = append(withMomentum, Einsum("jvd,jd->jv", vectors, v.momentum))
	}
	products := Stack([]*Node{Stack(withSum, 1), Stack(withMomentum, 1)}, 3) // [J, K, 3, 2]
	momentumDotBefore := dot(v.momentum, v.before)
	momentumDotSum := Add(momentumDotBefore, v.squared)

	// The trajectory from m, the slot's leaf, to n: rho = S(n) - S(m-1).
	// And that from m-1 to n: rho = S(n) - S(m-2) = S(n) - S(m-1) + p(m-1).
	sinceBefore := Sub(perSlot(momentumDotSum), pick(products, 1, 1)) // p(n).(S(n) - S(m-1))
	onward := And(isPositive(Sub(pick(products, 0, 0), pick(dots, 0))), isPositive(sinceBefore))
	inner := And(
		isPositive(Sub(pick(products, 2, 0), pick(dots, 1))), isPositive(Add(sinceBefore, pick(products, 2, 1))),
	)
	above := func(from *Node) *Node {
		return And(GreaterOrEqual(slot, perSlot(from)), LessOrEqual(slot, perSlot(high)))
	}
	turning := Or(And(above(low), Not(onward)), And(above(Add(low, one)), Not(inner)))
	// None of the slots checked is the one that this leaf takes, so that it may be written in place.
	store := And(perSlot(Not(odd)), Equal(slot, perSlot(top)))        // [J, K]
	store = isPositive(Sqrt(ConvertDType(store, v.momentum.DType()))) // see computedOnce
	now := Concatenate([]*Node{v.momentum, v.before, v.previous}, 1)
	for i, vectors := range c.vectors {
		c.vectors[i] = Choose(Squeeze(Slice(store, AxisRange(), AxisElem(i)), 1), now, vectors)
	}
	nowDots := Stack([]*Node{momentumDotBefore, dot(v.previous, Sub(v.before, v.previous))}, 1) // [J, 2]
	overSlots := func(x *Node, axis int) *Node { return BroadcastToDims(ExpandAxes(x, axis), particles, slots, 2) }
	c.dots = Reshape(Where(overSlots(store, 2), overSlots(nowDots, 1), dots), particles, slots*2)

	return turns{
		within:         LogicalAny(turning, 1),
		innerOnward:    Squeeze(Slice(inner, AxisRange(), AxisElem(0)), 1),
		momentumDotSum: momentumDotSum,
	}
}

// computedOnce returns the masks, [J], such that each is computed once. XLA fuses cheap operations into every loop that
// uses them, where they are repeated for each coordinate of each particle: for the chain of decisions behind a mask
// this costs more than the gradient, at run time and at compile time. XLA does not duplicate a square root, which is
// exact for 0 and 1.
func computedOnce(dtype dtypes.DType, masks ...*Node) []*Node {
	var numbers []*Node
	for _, m := range masks {
		numbers = append(numbers, ConvertDType(m, dtype))
	}
	settled := isPositive(Sqrt(Stack(numbers, 1)))
	for i := range masks {
		numbers[i] = Squeeze(Slice(settled, AxisRange(), AxisElem(i)), 1)
	}
	return numbers
}

// dot is the product of the rows of a and b, [J, D] to [J].
func dot(a, b *Node) *Node { return compute.RowSums(Mul(a, b)) }

func isPositive(x *Node) *Node { return GreaterThan(x, ZerosLike(x)) }

// logAddExp is log(exp(a) + exp(b)), where not both are -Inf.
func logAddExp(a, b *Node) *Node { return Add(Max(a, b), Log1P(Exp(Neg(Abs(Sub(a, b)))))) }

func fillAs(like *Node, value float64) *Node {
	return BroadcastToShape(ConstAs(like, value), like.Shape())
}

package mcmc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// A burst makes several moves of all chains in one call, since short moves take less time than the call itself. The
// moves and their random numbers are the same as one by one; the host gets the records after the call. A warm-up may
// change the step size after each transition, so there a call makes the moves of one transition (lockStep).

// The limits of a burst besides those of a call.
const (
	burstNumbers   = 1 << 20 // of phi, that are kept for the host
	burstNumbersOn = 1 << 24 // the same on an accelerator, whose calls take longer
	burstInputs    = 1 << 24 // numbers of the problem's inputs
)

// burstPhi is the state's entry of phi after each move of a burst, [moves, J, D].
const burstPhi = "burst/phi"

// movesOfBurst is the number of moves in a burst.
func (m *moves) movesOfBurst(engine *compute.Engine) int {
	kept, inputs := burstNumbers, 1
	if !engine.OnCPU() {
		kept = burstNumbersOn
	}
	for _, t := range m.blank {
		inputs += t.Size()
	}
	return min(m.movesInCall(), compute.MostInCall, burstInputs/inputs, kept/(m.chains*m.problem.Dim))
}

// inBursts says whether a call may make several moves. It may not where the host takes part in each move, nor with a
// user's own kernel, which is checked between moves. Nor may it if a move has a loop, such as a Cholesky factorisation:
// within the loop over moves it would be unrolled. There kernel and target are built within a loop, where not all
// operations can be had (see compute.Loop): with a target that needs others a call makes one move.
func (m *moves) inBursts(engine *compute.Engine, s run.Settings) bool {
	if !engine.IsXLA() || s.Devices > 1 || m.problem.HostInputs != nil || ownMoves(m.kernel) != nil || m.carrier.loops {
		return false
	}
	return compute.Try(func() { // in a graph that is thrown away
		g := NewGraph(engine.Backend(), "mcmc loop probe")
		defer g.Finalize()
		nodes := m.problem.Parameters(g)
		for name, shape := range m.carrier.entryShapes() {
			nodes[name] = Parameter(g, name, shape)
		}
		if m.scaled {
			nodes[scaleName] = Parameter(g, scaleName, shapes.Make(m.dtype, m.problem.Dim))
		}
		const moves = 2
		inputs := []*Node{
			Parameter(g, "key", shapes.Make(dtypes.Uint32, 2)), Parameter(g, "first", shapes.Make(dtypes.Uint32)),
			Parameter(g, "step sizes", shapes.Make(dtypes.Float64, m.chains)),
		}
		for i, t := range m.blank {
			inputs = append(inputs, Parameter(g, fmt.Sprint("input ", i), severalOf(moves, t.Shape())))
		}
		m.burstStep(moves)(nodes, inputs)
	}) == nil
}

// movesInCall returns the number of moves whose work adds up to that of a call.
func (m *moves) movesInCall() int { return compute.CallWork / max(m.carrier.work, 1) }

// streamOf returns the random stream of move i of a call, given the key of the run's moves and the number of the call's
// first move.
func streamOf(key, first, i *Node) random.Stream {
	return random.FromKey(key).At(Add(first, ConvertDType(i, dtypes.Uint32)))
}

// burstStep makes the moves of a burst. Inputs: the key and the number of streamOf, each chain's step size, and the
// problem's inputs, stacked along a first axis of moves. Its record holds the records of the moves, one after the
// other.
func (m *moves) burstStep(moves int) compute.Step {
	const records = "records"
	return func(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
		g := inputs[0].Graph()
		nodes[records] = Zeros(g, shapes.Make(m.dtype, moves, m.recorded()))
		nodes[burstPhi] = Zeros(g, shapes.Make(m.dtype, moves, m.chains, m.problem.Dim))
		more := func(i *Node, _, _ []*Node) *Node { return LessThan(i, Const(i.Graph(), int32(moves))) }
		after := compute.LoopNodes(more, inputs, nodes, append(m.carrier.Names(), records, burstPhi),
			func(i *Node, inputs []*Node, at compute.Nodes) compute.Nodes {
				var own []*Node
				for _, x := range inputs[3:] {
					own = append(own, Squeeze(compute.RowsFrom(x, i, 1), 0))
				}
				next, record := m.move(at, streamOf(inputs[0], inputs[1], i), inputs[2], own, nil)
				next[records] = compute.WithRowsFrom(at[records], ExpandAxes(record, 0), i)
				next[burstPhi] = compute.WithRowsFrom(at[burstPhi], ExpandAxes(next[m.carrier.Phi()], 0), i)
				return next
			})
		all := Reshape(after[records], -1)
		delete(after, records)
		return after, all
	}
}

// mostInLockStep is the largest number of moves of a call of lockStep, a tree of NUTS.
const mostInLockStep = 1 << 10

// lockStepped makes at most `most` moves, until all chains have completed their transitions. A chain that has completed
// its own waits. Inputs: the key and the number of streamOf, each chain's step size, and which chains move. The record
// has, for each chain, the values of the move that completed its transition, or of the last move; then the number of
// moves.
func (m *moves) lockStepped(most int) compute.Step {
	const goesOn, moving, made, last = "goes on", "moving", "made", "last"
	at := slices.Index(m.carrier.infos, infoComplete) * m.chains
	return func(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
		g := inputs[0].Graph()
		nodes[goesOn], nodes[moving] = anyOf(inputs[3]), inputs[3]
		nodes[made], nodes[last] = Const(g, int32(0)), Zeros(g, shapes.Make(m.dtype, m.recorded()))
		more := func(i *Node, _, carried []*Node) *Node {
			return And(LessThan(i, Const(i.Graph(), int32(most))), carried[0])
		}
		after := compute.LoopNodes(more, inputs[:3], nodes,
			append([]string{goesOn, moving, made, last}, m.carrier.Names()...),
			func(i *Node, inputs []*Node, now compute.Nodes) compute.Nodes {
				next, record := m.move(now, streamOf(inputs[0], inputs[1], i), inputs[2], nil, now[moving])
				fields := m.recorded() / m.chains
				all := Reshape(BroadcastToDims(ExpandAxes(now[moving], 0), fields, m.chains), -1)
				next[last] = Where(all, record, now[last])
				complete := isPositive(Slice(next[last], AxisRange(at, at+m.chains)))
				next[moving] = And(now[moving], Not(complete))
				next[goesOn], next[made] = anyOf(next[moving]), OnePlus(now[made])
				return next
			})
		record := Concatenate([]*Node{after[last], ConvertDType(Reshape(after[made], 1), m.dtype)}, 0)
		maps.DeleteFunc(after, func(name string, _ *Node) bool { return !slices.Contains(m.carrier.Names(), name) })
		return after, record
	}
}

// anyOf says whether any of x, bool, is true.
func anyOf(x *Node) *Node {
	return isPositive(ReduceAllMax(ConvertDType(x, dtypes.Int32)))
}

// recorded returns the number of values in the record of a move.
func (m *moves) recorded() int {
	return max(1, (len(m.carrier.infos)+len(m.carrier.extra))*m.chains)
}

// make makes the moves of the next call.
func (r *sampling) make(ctx context.Context) ([]moveRecord, error) {
	if r.burst == nil {
		t, err := r.moveOnce(ctx, slices.Repeat([]bool{true}, r.Chains.Chains))
		if err != nil {
			return nil, err
		}
		return []moveRecord{t}, nil
	}
	all := []any{r.moveKey().Words(), uint32(r.Move), r.stepSizes()}
	stacked, err := r.stacked(r.burstMoves)
	for _, t := range stacked {
		defer t.FinalizeAll() //nolint:errcheck // freeing a tensor that was read
		all = append(all, t)
	}
	if err != nil {
		return nil, fmt.Errorf("mcmc: move %d: %w", r.Move, err)
	}
	values, err := r.burst.Run(r.state, all...)
	if err != nil {
		return nil, fmt.Errorf("mcmc: move %d: %w", r.Move, err)
	}
	var made []moveRecord
	for i := range r.burstMoves {
		of := values[i*r.recorded() : (i+1)*r.recorded()]
		made = append(made, moveRecord{moves: r.moves, values: of, phi: burstPhi, slot: i})
	}
	return made, nil
}

// stacked returns the problem's inputs for the next moves, stacked along a first axis of moves. What Problem.Inputs
// returns is copied before the next call, which may write into the same memory.
func (r *sampling) stacked(moves int) (stacked []*tensors.Tensor, err error) {
	if r.problem.Inputs == nil {
		return nil, nil
	}
	last := moves - 1 // the last move that is kept, where it is known: Inputs may have no rows for later ones
	if !r.carrier.SeveralMoves() {
		last = min(last, r.Chains.Draws*r.Thin-r.Tallies[0].Transitions-1)
	}
	for _, t := range r.blank {
		stacked = append(stacked, tensors.FromShape(severalOf(moves, t.Shape())))
	}
	for i := range moves {
		move := r.Move + min(i, last)
		inputs, err := tensorsOf(r.problem.Inputs(move))
		if err != nil {
			return stacked, err
		}
		if !slices.EqualFunc(inputs, r.blank, func(a, b *tensors.Tensor) bool { return a.Shape().Equal(b.Shape()) }) {
			return stacked, fmt.Errorf("Problem.Inputs gives %s for move %d: it must give as many of the same shapes as for "+
				"move 0, %s", shapesOf(inputs), move, shapesOf(r.blank))
		}
		for k, t := range inputs {
			var wrong error
			err = t.ConstBytes(func(own []byte) {
				wrong = stacked[k].MutableBytes(func(whole []byte) { copy(whole[i*len(own):], own) })
			})
			if err = errors.Join(err, wrong); err != nil {
				return stacked, fmt.Errorf("input %d: %w", k, err)
			}
		}
	}
	return stacked, nil
}

// shapesOf lists the shapes of tensors.
func shapesOf(all []*tensors.Tensor) (of []shapes.Shape) {
	for _, t := range all {
		of = append(of, t.Shape())
	}
	return of
}

// severalOf is a shape with an axis of moves before its own.
func severalOf(moves int, shape shapes.Shape) shapes.Shape {
	return shapes.Make(shape.DType, append([]int{moves}, shape.Dimensions...)...)
}

// tensorsOf are a problem's inputs as tensors.
func tensorsOf(inputs []any) (all []*tensors.Tensor, err error) {
	for i, v := range inputs {
		t, ok := v.(*tensors.Tensor)
		switch {
		case v == nil || ok && t == nil:
			return nil, fmt.Errorf("input %d: it is nil: give a tensor or a Go value", i)
		case !ok:
			if t, err = tensors.FromAnyValue(v); err != nil {
				return nil, fmt.Errorf("input %d: %w", i, err)
			}
		}
		all = append(all, t)
	}
	return all, nil
}

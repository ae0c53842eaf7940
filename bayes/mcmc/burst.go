package mcmc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// burst makes several moves of all chains in one call, since short moves take less time than the call itself. The moves
// and their random numbers are the same as one by one; the host gets the records after the call. A warm-up may change
// the step size after each transition, so there a call makes the moves of one transition (lockStep).
type burst struct {
	program *compute.Program
	moves   int // in a call
	every   int // phi is kept after each `every` moves, a divisor of moves, since no draw is due between
}

// The limits of a burst. The work of a move is about the number of numbers that its graph computes; 400 million take a
// CPU some 10 ms, in which a run cannot be interrupted, and an accelerator less.
const (
	burstMoves   = 64
	burstWork    = 400_000_000
	burstNumbers = 1 << 20 // of phi, that are kept for the host
	burstInputs  = 1 << 24 // numbers of the problem's inputs
)

// burstPhi is the state's entry of phi after each `every` moves of a burst, [moves / every, J, D].
const burstPhi = "burst/phi"

// newBurst decides how many moves a call makes; nil: one. In a burst kernel and target are built within a loop, where
// not all operations can be had (see compute.Loop): with a target that needs others there is none.
func (m *moves) newBurst(engine *compute.Engine, s setup, reads []string) (*burst, error) {
	if !m.inBursts(engine, s) {
		return nil, nil
	}
	var own []shapes.Shape // of the problem's inputs for a move
	numbers := 1           // of these
	for i, v := range blankInputs(m.problem) {
		t, err := tensorOf(v)
		if err != nil {
			return nil, fmt.Errorf("mcmc: input %d: %w", i, err)
		}
		own, numbers = append(own, t.Shape()), numbers+t.Size()
	}
	b := &burst{every: 1, moves: min(m.movesInCall(), burstMoves, burstInputs/numbers)}
	if fits := fitting(b.moves, s.Thin); !m.carrier.SeveralMoves() && (fits > b.moves/2 || !m.keepsMoves(b.moves)) {
		b.moves, b.every = fits, min(max(fits, 1), s.Thin) // else too few divide Thin, as where it is a prime number
	}
	for b.moves > b.every && !m.keepsMoves(b.moves/b.every) {
		b.moves -= b.every
	}
	if b.moves < 2 {
		return nil, nil
	}
	inputs := []shapes.Shape{shapes.Make(dtypes.Uint32, 3), shapes.Make(dtypes.Float64, m.chains)}
	for _, shape := range own {
		inputs = append(inputs, severalOf(b.moves, shape))
	}
	if m.probeLoop(engine, reads, inputs, m.burstStep(*b, reads)) != nil {
		return nil, nil
	}
	updates := m.carrier.Names()
	if b.moves > b.every {
		updates = append(updates, burstPhi)
	}
	var err error
	b.program, err = compute.NewProgram(engine, "mcmc moves", reads, updates, m.burstStep(*b, reads))
	return b, err
}

// keepsMoves says whether phi after each of these moves, [moves, J, D], is small enough to be kept for the host.
func (m *moves) keepsMoves(moves int) bool { return moves*m.chains*m.problem.Dim <= burstNumbers }

// fitting is the largest number up to a limit that is a multiple of n or divides it; 0 if the limit is below 1.
func fitting(limit, n int) int {
	if limit >= n {
		return limit - limit%n
	}
	for ; limit > 1 && n%limit != 0; limit-- {
	}
	return max(limit, 0)
}

// inBursts says whether a call may make several moves. It may not where the host takes part in each move, nor with a
// user's own kernel, which is checked between moves. Nor may it if a move has a loop, such as a Cholesky factorisation:
// within the loop over moves it would be unrolled.
func (m *moves) inBursts(engine *compute.Engine, s setup) bool {
	return engine.IsXLA() && s.Devices <= 1 && m.problem.HostInputs == nil && ownMoves(m.kernel) == nil &&
		!m.carrier.loops
}

// movesInCall returns the number of moves whose work adds up to burstWork.
func (m *moves) movesInCall() int { return burstWork / max(m.carrier.work, 1) }

// probeLoop builds a step with moves in a loop in a graph of its own, and returns the error if that cannot be.
func (m *moves) probeLoop(engine *compute.Engine, reads []string, inputs []shapes.Shape, step compute.Step) error {
	return compute.Try(func() {
		g := NewGraph(engine.Backend(), "mcmc loop probe")
		defer g.Finalize()
		shapesOf := m.carrier.entryShapes()
		for name, t := range m.problem.Data {
			shapesOf[density.DataPrefix+name] = t.Shape()
		}
		shapesOf[scaleName] = shapes.Make(m.dtype, m.problem.Dim)
		nodes := compute.Nodes{}
		for _, name := range reads {
			nodes[name] = Parameter(g, name, shapesOf[name])
		}
		var all []*Node
		for i, shape := range inputs {
			all = append(all, Parameter(g, fmt.Sprint("input ", i), shape))
		}
		step(nodes, all)
	})
}

// loopNodes returns nodes by their names, such as the fixed and the carried entries within a loop over moves.
func loopNodes(names []string, nodes []*Node) compute.Nodes {
	within := compute.Nodes{}
	for k, name := range names {
		within[name] = nodes[k]
	}
	return within
}

// streamOf returns the random stream of move i of a call. words, uint32 [3], holds the key of the run's moves and the
// number of the call's first move.
func (m *moves) streamOf(words, i *Node) random.Stream {
	first := Reshape(Slice(words, AxisElem(2)))
	return random.FromKey(words).At(Add(first, ConvertDType(MulScalar(i, float64(m.leaps)), dtypes.Uint32)))
}

// words returns the words of streamOf for the next call.
func (r *sampling) words() []uint32 { return append(r.moveKey().Words(), uint32(r.Move)) }

// list is nodes in the order of names.
func list(names []string, nodes compute.Nodes) (all []*Node) {
	for _, name := range names {
		all = append(all, nodes[name])
	}
	return all
}

// burstStep makes the moves of a burst. Inputs: the words of streamOf, each chain's step size, and the problem's
// inputs, stacked along a first axis of moves. Its record holds the records of the moves, one after the other.
func (m *moves) burstStep(b burst, reads []string) compute.Step {
	carriedNames := m.carrier.Names()
	fixed := reads[len(carriedNames):] // reads begins with what is carried
	return func(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
		g, outer := inputs[0].Graph(), slices.Concat(inputs, list(fixed, nodes))
		carried := append(list(carriedNames, nodes),
			Zeros(g, shapes.Make(m.dtype, b.moves, m.recorded())),
			Zeros(g, shapes.Make(m.dtype, b.moves/b.every, m.chains, m.problem.Dim)))
		after := compute.Loop(b.moves, outer, carried, func(i *Node, outer, carried []*Node) []*Node {
			within := loopNodes(fixed, outer[len(inputs):])
			maps.Copy(within, loopNodes(carriedNames, carried))
			var own []*Node
			for _, x := range outer[2:len(inputs)] {
				own = append(own, Squeeze(compute.RowsFrom(x, i, 1), 0))
			}
			next, record := m.move(within, m.streamOf(outer[0], i), outer[1], own, nil)
			records, kept := carried[len(carried)-2], carried[len(carried)-1]
			slot := Div(i, Const(i.Graph(), int32(b.every)))
			return append(list(carriedNames, next),
				compute.WithRowsFrom(records, ExpandAxes(record, 0), i),
				compute.WithRowsFrom(kept, ExpandAxes(next[m.carrier.Phi()], 0), slot))
		})
		next := loopNodes(carriedNames, after)
		if b.moves > b.every {
			next[burstPhi] = after[len(after)-1]
		}
		return next, Reshape(after[len(after)-2], -1)
	}
}

// newLockStep prepares lockStep; nil if a call makes one move.
func (m *moves) newLockStep(engine *compute.Engine, s setup, reads []string) (*compute.Program, error) {
	most := min(m.movesInCall(), mostInLockStep)
	if !m.inBursts(engine, s) || blankInputs(m.problem) != nil || !m.carrier.SeveralMoves() || most < 2 {
		return nil, nil
	}
	step := m.lockStepped(most, reads)
	inputs := []shapes.Shape{
		shapes.Make(dtypes.Uint32, 3), shapes.Make(dtypes.Float64, m.chains), shapes.Make(dtypes.Bool, m.chains),
	}
	if m.probeLoop(engine, reads, inputs, step) != nil {
		return nil, nil
	}
	return compute.NewProgram(engine, "mcmc transition in lock step", reads, m.carrier.Names(), step)
}

// mostInLockStep is the largest number of moves of a call of lockStep, a tree of NUTS.
const mostInLockStep = 1 << 10

// lockStepped makes at most `most` moves, until all chains have completed their transitions. A chain that has completed
// its own waits. Inputs: the words of streamOf, each chain's step size, and which chains move. The record has, for each
// chain, the values of the move that completed its transition, or of the last move; then the number of moves.
func (m *moves) lockStepped(most int, reads []string) compute.Step {
	carriedNames := m.carrier.Names()
	fixed := reads[len(carriedNames):]
	at := slices.Index(m.carrier.infos, infoComplete) * m.chains
	return func(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
		g, moving := inputs[0].Graph(), inputs[2]
		outer := slices.Concat(inputs[:2], list(fixed, nodes))
		carried := append([]*Node{anyOf(moving), moving, Const(g, int32(0)),
			Zeros(g, shapes.Make(m.dtype, m.recorded()))}, list(carriedNames, nodes)...)
		after := compute.LoopWhile(most, outer, carried, func(i *Node, outer, carried []*Node) []*Node {
			within := loopNodes(fixed, outer[2:])
			maps.Copy(within, loopNodes(carriedNames, carried[4:]))
			moving, made, before := carried[1], carried[2], carried[3]
			next, record := m.move(within, m.streamOf(outer[0], i), outer[1], nil, moving)
			fields := m.recorded() / m.chains
			all := Reshape(BroadcastToDims(ExpandAxes(moving, 0), fields, m.chains), -1)
			record = Where(all, record, before)
			complete := isPositive(Slice(record, AxisRange(at, at+m.chains)))
			moving = And(moving, Not(complete))
			return append([]*Node{anyOf(moving), moving, OnePlus(made), record}, list(carriedNames, next)...)
		})
		made := ConvertDType(Reshape(after[2], 1), m.dtype)
		return loopNodes(carriedNames, after[4:]), Concatenate([]*Node{after[3], made}, 0)
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
	b := r.burst
	if b == nil || r.Tallies[0].Transitions%b.every != 0 { // as after a resume from a checkpoint within a burst
		t, err := r.moveOnce(ctx, nil)
		if err != nil {
			return nil, err
		}
		return []moveRecord{t}, nil
	}
	all := []any{r.words(), r.stepSizes()}
	stacked, err := r.stacked(b.moves)
	for _, t := range stacked {
		defer t.FinalizeAll() //nolint:errcheck // freeing a tensor that was read
		all = append(all, t)
	}
	if err != nil {
		return nil, fmt.Errorf("mcmc: move %d: %w", r.Move, err)
	}
	values, err := b.program.Run(r.state, all...)
	if err != nil {
		return nil, fmt.Errorf("mcmc: move %d: %w", r.Move, err)
	}
	var made []moveRecord
	for i := range b.moves {
		t := moveRecord{moves: r.moves, values: values[i*r.recorded() : (i+1)*r.recorded()], phi: r.carrier.Phi()}
		if b.moves > b.every {
			t.phi, t.slot = burstPhi, i/b.every
		}
		made = append(made, t)
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
		last = min(last, r.settings.Draws*r.Thin-r.Tallies[0].Transitions-1)
	}
	for i := range moves {
		move := r.Move + min(i, last)*r.leaps
		inputs := r.problem.Inputs(move)
		if i > 0 && len(inputs) != len(stacked) {
			return stacked, fmt.Errorf("Problem.Inputs gives %d inputs for move %d, and %d for move %d: it must give as many",
				len(stacked), r.Move, len(inputs), move)
		}
		for k, v := range inputs {
			t, err := tensorOf(v)
			if err != nil {
				return stacked, fmt.Errorf("input %d: %w", k, err)
			}
			shape := severalOf(moves, t.Shape())
			if i == 0 {
				stacked = append(stacked, tensors.FromShape(shape))
			}
			if whole := stacked[k].Shape(); !whole.Equal(shape) {
				before := shapes.Make(whole.DType, whole.Dimensions[1:]...)
				return stacked, fmt.Errorf("input %d: %s, and %s in a move before: the shapes must be the same", k, t.Shape(),
					before)
			}
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

// severalOf is a shape with an axis of moves before its own.
func severalOf(moves int, shape shapes.Shape) shapes.Shape {
	return shapes.Make(shape.DType, append([]int{moves}, shape.Dimensions...)...)
}

// tensorOf is an input of a problem as a tensor.
func tensorOf(v any) (*tensors.Tensor, error) {
	if t, ok := v.(*tensors.Tensor); ok && t != nil {
		return t, nil
	} else if ok || v == nil {
		return nil, errors.New("it is nil: give a tensor or a Go value")
	}
	return tensors.FromAnyValue(v)
}

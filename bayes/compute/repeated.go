package compute

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Repeated is a Program that makes several short steps in a call, one after another on the device, since such a step
// takes less time than the call. The state and the records are those of as many calls.
type Repeated struct {
	engine  *Engine
	name    string
	reads   []string
	updates []string
	batches Batches
	step    Step

	program *Program // nil before the first call
	most    int      // steps in a call
	values  int      // in the record of a step
}

// The limits of a call, in which a run cannot be interrupted. A thousand million numbers, as Work counts them, take a
// CPU some 20 to 40 ms, and an accelerator less.
const (
	CallWork   = 1_000_000_000
	MostInCall = 64      // steps
	mostInputs = 1 << 22 // numbers in the inputs of all of them
)

// Work counts the numbers that the nodes of a graph compute or, of a product or a convolution, those that it
// multiplies.
func Work(nodes []*graph.Node) (work int) {
	for _, node := range nodes {
		size, inputs := node.Shape().Size(), node.Inputs()
		switch {
		case size == 0:
		case node.Type() == graph.NodeTypeDotGeneral:
			// Of m k and k n numbers m n are made: the root is m k n. For many products at once it is larger: no harm.
			size = int(math.Sqrt(float64(size) * float64(inputs[0].Shape().Size()) * float64(inputs[1].Shape().Size())))
		case node.Type() == graph.NodeTypeConvGeneral:
			// The last axis of its kernels, as Convolve takes them, is of the results.
			size *= inputs[1].Shape().Size() / inputs[1].Shape().Dim(-1)
		}
		work += size
	}
	return work
}

// Batches makes the inputs of a step from those of a call, which each have a first axis more if the call makes several
// steps, such as a batch from the numbers of its rows: before the loop, so that what it reads is not copied into it.
type Batches struct {
	Reads []string // entries of the state
	Alone bool     // a call makes one step, such as where each has rows of its own in the state
	Make  func(state Nodes, inputs []*graph.Node) []*graph.Node
}

// NewRepeated prepares a step as NewProgram does; updates are all in reads. A call makes one step on other backends
// than XLA, of a state that several devices share, where a step's Work is above half of CallWork, and where it cannot
// stand in a loop: if it has a loop itself, or operations that GoMLX has outside of closures only.
func NewRepeated(engine *Engine, name string, reads, updates []string, batches Batches, step Step) *Repeated {
	return &Repeated{engine: engine, name: name, reads: reads, updates: updates, batches: batches, step: step}
}

// Run makes at least one and at most the given number of steps, and returns their records. inputs gives those of step i
// of the call, counted from 0: slices of int32, uint32 or float64, as long for each step. After an error it is as after
// one of Program.Run.
func (r *Repeated) Run(state *State, steps int, inputs func(i int) []any) (records [][]float64, err error) {
	if r.program == nil {
		if err := r.prepare(state, inputs(0)); err != nil {
			return nil, err
		}
	}
	var all [][]any
	for i := range min(max(steps, 1), r.most) {
		all = append(all, inputs(i))
	}
	given := all[0]
	if r.most > 1 {
		given = stack(all, r.most)
	}
	record, err := r.program.Run(state, given...)
	if err != nil {
		return nil, err
	}
	if r.most == 1 {
		return [][]float64{record}, nil
	}
	return slices.Collect(slices.Chunk(record[:len(all)*r.values], r.values)), nil
}

// prepare decides how many steps a call makes, and prepares its program.
func (r *Repeated) prepare(state *State, inputs []any) (err error) {
	all := append(slices.Clone(r.reads), r.batches.Reads...)
	if r.most = 1; r.engine.IsXLA() && state.layout == nil && !r.batches.Alone {
		r.most = r.mostOf(state, all, inputs)
	}
	if r.most > 1 {
		if r.program, err = NewProgram(r.engine, r.name, all, r.updates, r.several); err != nil {
			return err
		}
		if r.program.compile(state, stack([][]any{inputs}, r.most)) == nil {
			return nil
		}
		r.program.Close() // if the step itself is wrong, the program of one says how
		r.most = 1
	}
	one := func(s Nodes, inputs []*graph.Node) (Nodes, *graph.Node) { return r.step(s, r.batches.Make(s, inputs)) }
	r.program, err = NewProgram(r.engine, r.name, all, r.updates, one)
	return err
}

// mostOf is how many steps a call may make, by a graph of one that is thrown away.
func (r *Repeated) mostOf(state *State, reads []string, inputs []any) (most int) {
	most = 1
	_ = Try(func() { // an error is met again by the program of one
		g := graph.NewGraph(r.engine.backend, r.name+" probe")
		defer g.Finalize()
		nodes := Nodes{}
		for _, name := range reads {
			if !state.has(name) {
				return
			}
			nodes[name] = graph.Parameter(g, name, state.tensors[name].Shape())
		}
		var given []*graph.Node
		for i, input := range inputs {
			shape, err := shapes.FromAnyValue(input)
			if err != nil {
				panic(err)
			}
			given = append(given, graph.Parameter(g, fmt.Sprint("input ", i), shape))
		}
		size := 1
		given = r.batches.Make(nodes, given)
		for _, input := range given {
			size += input.Shape().Size()
		}
		_, record := r.step(nodes, given)
		r.values = record.Shape().Size()
		if !slices.ContainsFunc(g.Nodes(), func(n *graph.Node) bool { return n.Type() == graph.NodeTypeWhile }) {
			most = max(1, min(MostInCall, CallWork/Work(g.Nodes()), mostInputs/size))
		}
	})
	return most
}

// several are the steps of a call. Inputs: how many, an int32 scalar, and those of the steps along a first axis.
func (r *Repeated) several(state Nodes, inputs []*graph.Node) (Nodes, *graph.Node) {
	const records = "records of the call" // no step reads or makes an entry of this name
	count, inputs := inputs[0], append(r.batches.Make(state, inputs[1:]), inputs[0])
	nodes := Nodes{records: graph.Zeros(count.Graph(), shapes.Make(Float64, r.most, r.values))}
	for _, name := range r.reads { // without those of the batches
		nodes[name] = state[name]
	}
	more := func(i *graph.Node, outer, _ []*graph.Node) *graph.Node {
		return graph.LessThan(i, outer[len(inputs)-1])
	}
	after := LoopNodes(more, inputs, nodes, append(slices.Clone(r.updates), records),
		func(i *graph.Node, inputs []*graph.Node, now Nodes) Nodes {
			own := slices.Clone(inputs[:len(inputs)-1])
			for k := range own {
				if own[k] = graph.Squeeze(RowsFrom(own[k], i, 1), 0); own[k].DType().IsFloat() {
					own[k] = Materialise(own[k], now[r.updates[0]]) // otherwise each loop that uses it would slice again
				}
			}
			next, record := r.step(now, own)
			row := graph.Reshape(graph.ConvertDType(record, Float64), 1, r.values)
			next[records] = WithRowsFrom(now[records], row, i)
			return next
		})
	all := graph.Reshape(after[records], -1)
	delete(after, records)
	return after, all
}

// stack returns the number of steps, and their inputs along a first axis that has room for most.
func stack(steps [][]any, most int) []any {
	stacked := []any{int32(len(steps))}
	for k, first := range steps[0] {
		switch first.(type) {
		case []int32:
			stacked = append(stacked, column[int32](steps, k, most))
		case []uint32:
			stacked = append(stacked, column[uint32](steps, k, most))
		default:
			stacked = append(stacked, column[float64](steps, k, most))
		}
	}
	return stacked
}

// column returns input k of each step, and behind those of the last again.
func column[T any](steps [][]any, k, most int) (rows [][]T) {
	for i := range most {
		rows = append(rows, steps[min(i, len(steps)-1)][k].([]T))
	}
	return rows
}

// Close frees the compiled program.
func (r *Repeated) Close() {
	if r.program != nil {
		r.program.Close()
	}
}

package compute

import (
	"errors"
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Repeated is a Program that makes several steps in a call, one after another on the device, since a short step takes
// less time than a call. The state and the records are those of as many calls.
type Repeated struct {
	*Program
	most   int // steps in a call
	values int // in the record of a step
	single func() (*Program, error)
}

// NewRepeated prepares a step as NewProgram does, of which a call makes up to most. values is the number of values in
// its record, and updates are all in reads. A call makes one step if most is 1, on other backends than XLA, and where
// the step cannot stand in a loop: if it has a loop itself, or operations that GoMLX has outside of closures only.
func NewRepeated(
	engine *Engine, name string, reads, updates []string, most, values int, step Step,
) (r *Repeated, err error) {
	r = &Repeated{most: most, values: values, single: func() (*Program, error) {
		return NewProgram(engine, name, reads, updates, step)
	}}
	if most == 1 || !engine.IsXLA() {
		r.most = 1
		r.Program, err = r.single()
		return r, err
	}
	fixed := slices.DeleteFunc(slices.Clone(reads), func(name string) bool { return slices.Contains(updates, name) })
	list := func(all []*graph.Node, state Nodes, names []string) []*graph.Node {
		for _, name := range names {
			all = append(all, state[name])
		}
		return all
	}
	loop := func(state Nodes, inputs []*graph.Node) (Nodes, *graph.Node) {
		g := inputs[0].Graph()
		g.AttachState(repeatedKey{}, true)
		records := graph.Zeros(g, shapes.Make(Float64, most, values))
		carried := append(list(nil, state, updates), records)
		after := LoopWhile(func(i *graph.Node, outer, _ []*graph.Node) *graph.Node {
			return graph.LessThan(i, outer[0])
		}, list(inputs, state, fixed), carried, func(i *graph.Node, outer, carried []*graph.Node) []*graph.Node {
			now := Nodes{}
			for k, name := range fixed {
				now[name] = outer[len(inputs)+k]
			}
			for k, name := range updates {
				now[name] = carried[k]
			}
			var own []*graph.Node
			for _, input := range outer[1:len(inputs)] {
				own = append(own, graph.Squeeze(RowsFrom(input, i, 1), 0))
			}
			next, record := step(now, own)
			row := graph.Reshape(graph.ConvertDType(record, Float64), 1, values)
			return append(list(nil, next, updates), WithRowsFrom(carried[len(updates)], row, i))
		})
		next := Nodes{}
		for k, name := range updates {
			next[name] = after[k]
		}
		return next, graph.Reshape(after[len(updates)], -1)
	}
	r.Program, err = NewProgram(engine, name, reads, updates, loop)
	return r, err
}

// repeatedKey marks the graph of a Repeated. A loop within a step would be unrolled there.
type repeatedKey struct{}

var errNested = errors.New("compute: a loop in a step that is repeated")

// Run makes at least one and at most the given number of steps, and returns their records. inputs gives those of step i
// of the call, counted from 0: slices of int32, uint32 or float64, as long for each step. After an error it is as after
// one of Program.Run.
func (r *Repeated) Run(state *State, steps int, inputs func(i int) []any) (records [][]float64, err error) {
	var all [][]any
	for i := range min(max(steps, 1), r.most) {
		all = append(all, inputs(i))
	}
	if r.most > 1 && !r.started && r.compile(state, stack(all, r.most)) != nil {
		r.Close() // if the step itself is wrong, the program of one says how
		r.most = 1
		if r.Program, err = r.single(); err != nil {
			return nil, err
		}
	}
	if r.most == 1 {
		record, err := r.Program.Run(state, all[0]...)
		if err != nil {
			return nil, err
		}
		return [][]float64{record}, nil
	}
	record, err := r.Program.Run(state, stack(all, r.most)...)
	if err != nil {
		return nil, err
	}
	return slices.Collect(slices.Chunk(record[:len(all)*r.values], r.values)), nil
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

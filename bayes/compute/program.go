package compute

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// State is a set of named tensors that live on the engine's device between steps. Programs read and replace them.
type State struct {
	engine  *Engine
	tensors map[string]*tensors.Tensor
}

// NewState is an empty state on the engine.
func NewState(engine *Engine) *State {
	return &State{engine: engine, tensors: map[string]*tensors.Tensor{}}
}

// Set puts a tensor into the state, which from now on owns it.
func (s *State) Set(name string, t *tensors.Tensor) {
	if old := s.tensors[name]; old != nil && old != t {
		old.FinalizeAll() //nolint:errcheck // what is replaced may be gone already
	}
	s.tensors[name] = t
}

// Get returns a tensor of the state, nil if there is none. The state owns it still, and the next step may consume it: copy out
// what must last.
func (s *State) Get(name string) *tensors.Tensor { return s.tensors[name] }

// Names lists the tensors of the state, sorted.
func (s *State) Names() []string {
	names := make([]string, 0, len(s.tensors))
	for name := range s.tensors {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Close frees the tensors.
func (s *State) Close() {
	for _, t := range s.tensors {
		t.FinalizeAll() //nolint:errcheck // a tensor consumed by a failed step is gone already
	}
	clear(s.tensors)
}

// Nodes are a step's tensors while its graph is built, by the names that they have in the State.
type Nodes map[string]*graph.Node

// Step is what a Program compiles: from the state and the inputs of one call it builds the next state (only the entries
// that change) and a record, a small vector for the host. It builds graph, and panics as GoMLX does.
type Step func(state Nodes, inputs []*graph.Node) (next Nodes, record *graph.Node)

// Program is a compiled step over a State. The state stays on the device: entries that the step replaces are donated, so that
// the new value may take the old one's memory, and only the record comes to the host.
type Program struct {
	engine  *Engine
	name    string
	reads   []string
	updates []string
	exec    *graph.Exec
	started bool // a first call has compiled it
}

// NewProgram prepares a step that reads the named entries of a state and replaces those in updates (some of which may be
// new). It is compiled at the first Run, and again for each new shape of the inputs.
func NewProgram(engine *Engine, name string, reads, updates []string, step Step) (*Program, error) {
	p := &Program{engine: engine, name: name, reads: reads, updates: updates}
	exec, err := graph.NewExec(engine.backend, func(args []*graph.Node) []*graph.Node {
		state := Nodes{}
		for i, r := range reads {
			state[r] = args[i]
		}
		next, record := step(state, args[len(reads):])
		outputs := make([]*graph.Node, 0, len(updates)+1)
		for _, u := range updates {
			node, ok := next[u]
			if !ok {
				panic(fmt.Errorf("program %q: the step does not give %q, which it is to update", name, u))
			}
			outputs = append(outputs, node)
		}
		if len(next) != len(updates) {
			panic(fmt.Errorf("program %q: the step gives %d entries, declared are %q", name, len(next), updates))
		}
		return append(outputs, graph.ConvertDType(record, Float64))
	})
	if err != nil {
		return nil, fmt.Errorf("program %q: %w", name, err)
	}
	p.exec = exec.WithName(name).SetMaxCache(-1)
	return p, nil
}

// Run makes one step and returns its record. Inputs are tensors or Go values of fixed shape. If it fails, entries that the
// step replaces are lost: the state must be restored before it can go on.
func (p *Program) Run(state *State, inputs ...any) (record []float64, err error) {
	for _, r := range p.reads { // before anything is donated
		if state.tensors[r] == nil {
			return nil, fmt.Errorf("program %q: the state has no %q, only %q", p.name, r, state.Names())
		}
	}
	args := make([]any, 0, len(p.reads)+len(inputs))
	for _, r := range p.reads {
		t := state.tensors[r]
		if !slices.Contains(p.updates, r) {
			args = append(args, t)
			continue
		}
		donated, err := graph.DonateTensorBuffer(t, p.engine.backend, 0)
		if err != nil {
			return nil, fmt.Errorf("program %q: %q: %w", p.name, r, explain(err))
		}
		args = append(args, donated)
	}
	args = append(args, inputs...)
	outputs, err := p.exec.Call(args...)
	if err != nil {
		return nil, fmt.Errorf("program %q: %w", p.name, explain(err))
	}
	if !p.started {
		p.started = true
		returnFreedMemory()
	}
	for i, u := range p.updates {
		state.Set(u, outputs[i])
	}
	last := outputs[len(outputs)-1]
	defer last.FinalizeAll() //nolint:errcheck // freeing a tensor that was read
	record, err = tensors.CopyFlatData[float64](last)
	if err != nil {
		return nil, fmt.Errorf("program %q: record: %w", p.name, err)
	}
	return record, nil
}

// Close frees the compiled program.
func (p *Program) Close() { p.exec.Finalize() }

// Host copies the named tensors to the host, all of them if no name is given.
func (s *State) Host(names ...string) (map[string]*tensors.Tensor, error) {
	if len(names) == 0 {
		names = s.Names()
	}
	copies := map[string]*tensors.Tensor{}
	for _, name := range names {
		t := s.tensors[name]
		if t == nil {
			return nil, fmt.Errorf("the state has no %q, only %q", name, s.Names())
		}
		local, err := t.LocalClone()
		if err != nil {
			return nil, fmt.Errorf("copying %q to the host: %w", name, explain(err))
		}
		copies[name] = local
	}
	return copies, nil
}

// Floats makes a float32 or float64 tensor on the host.
func Floats(dtype DType, values []float64, dims ...int) *tensors.Tensor {
	if dtype == Float64 {
		return tensors.FromFlatDataAndDimensions(slices.Clone(values), dims...)
	}
	narrow := make([]float32, len(values))
	for i, v := range values {
		narrow[i] = float32(v)
	}
	return tensors.FromFlatDataAndDimensions(narrow, dims...)
}

// Float64s copies a float32 or float64 tensor to the host; other types are an error.
func Float64s(t *tensors.Tensor) ([]float64, error) {
	out := make([]float64, t.Size())
	var wrong error
	err := t.ConstFlatData(func(flat any) {
		switch flat := flat.(type) {
		case []float64:
			copy(out, flat)
		case []float32:
			for i, v := range flat {
				out[i] = float64(v)
			}
		default:
			wrong = fmt.Errorf("compute: a tensor of %s where float32 or float64 was expected", t.DType())
		}
	})
	if err = errors.Join(err, wrong); err != nil {
		return nil, err
	}
	return out, nil
}

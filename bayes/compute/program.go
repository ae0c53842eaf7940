package compute

import (
	"errors"
	"fmt"
	"slices"

	backends "github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Nodes are a step's tensors as nodes of its graph, by their names in the State.
type Nodes map[string]*graph.Node

// Step is the function that a Program compiles: from the state and the inputs of one call it builds the next state
// (only the entries that change) and a record, a small vector for the host. It builds graph, and panics as GoMLX does.
type Step func(state Nodes, inputs []*graph.Node) (next Nodes, record *graph.Node)

// Program is a compiled step over a State. The state stays on the device: the step's inputs that it replaces are
// donated, so that their memory is free as soon as the step ends, and only the record is copied to the host. While the
// step runs, old and new values exist together; if the device's memory is known and too small, Run returns an
// error.
type Program struct {
	engine  *Engine
	name    string
	reads   []string
	updates []string
	exec    *graph.Exec
	layout  *layout // of the states that it is compiled for
	started bool    // a first call has compiled it
	apart   bool    // it runs on another engine than the states that it fills
}

// NewProgram prepares a step that reads the named entries of a state and replaces the entries in updates, or adds new
// ones. It is compiled at the first Run, for that state's Sharding, and again for each new shape of the inputs.
func NewProgram(engine *Engine, name string, reads, updates []string, step Step) (*Program, error) {
	p := &Program{engine: engine, name: name, reads: reads, updates: updates}
	exec, err := graph.NewExec(engine.backend, func(args []*graph.Node) []*graph.Node {
		state, need := Nodes{}, demand{}
		for i, arg := range args {
			of := fmt.Sprint("input ", i-len(reads))
			if i < len(reads) {
				of = reads[i]
				state[of] = arg
			}
			need.add(p, of, arg.Shape())
		}
		if len(args) > 0 {
			args[0].Graph().AttachState(heldKey{}, need.bytes)
		}
		var next Nodes
		var record *graph.Node
		// After a panic with another value than an error GoMLX would wait for the graph forever when the program is closed.
		if err := Try(func() { next, record = step(state, args[len(reads):]) }); err != nil {
			panic(err)
		}
		outputs := make([]*graph.Node, 0, len(updates)+1)
		for _, u := range updates {
			node, ok := next[u]
			if !ok {
				panic(fmt.Errorf("program %q: the step does not give %q, which it is to update", name, u))
			}
			outputs = append(outputs, node)
			need.add(p, u, node.Shape())
		}
		if len(next) != len(updates) {
			panic(fmt.Errorf("program %q: the step gives %d entries, declared are %q", name, len(next), updates))
		}
		if err := need.check(p); err != nil {
			panic(err)
		}
		return append(outputs, graph.ConvertDType(record, Float64))
	})
	if err != nil {
		return nil, fmt.Errorf("program %q: %w", name, err)
	}
	p.exec = exec.WithName(name).SetMaxCache(-1)
	return p, nil
}

// hostNumbers is the largest number of numbers in an initial state for which the Go backend is used: for more, XLA is
// faster although it compiles first.
const hostNumbers = 1 << 20

// NewInitial prepares a step that makes entries of a state from its inputs alone, such as the first particles. numbers
// is the count of numbers that it makes. It runs once, so few numbers are made by GoMLX's Go backend, which does not
// compile, whatever the engine of the state. Random numbers are the same there up to the last bits of normals (see
// package random).
func NewInitial(engine *Engine, name string, numbers int, updates []string, step Step) (*Program, error) {
	if !engine.IsXLA() || numbers > hostNumbers {
		return NewProgram(engine, name, nil, updates, step)
	}
	host, err := Open(GoBackend)
	if err != nil {
		return nil, fmt.Errorf("program %q: %w", name, err)
	}
	p, err := NewProgram(host, name, nil, updates, step)
	if err == nil {
		p.apart = true
	}
	return p, err
}

// runApart makes the step on the program's own engine and copies the results into the state.
func (p *Program) runApart(state *State, inputs []any) (record []float64, err error) {
	own := NewState(p.engine)
	defer own.Close()
	if record, err = p.run(own, inputs); err != nil {
		return nil, err
	}
	made, err := own.Host(p.updates...)
	if err != nil {
		return nil, fmt.Errorf("program %q: %w", p.name, err)
	}
	for name, t := range made {
		state.Set(name, t)
	}
	return record, nil
}

// Run makes one step and returns its record. Inputs are tensors or Go values of fixed shape. If it fails, entries that
// the step replaces are lost: restore the state before another Run.
func (p *Program) Run(state *State, inputs ...any) (record []float64, err error) {
	if p.apart {
		return p.runApart(state, inputs)
	}
	return p.run(state, inputs)
}

func (p *Program) run(state *State, inputs []any) (record []float64, err error) {
	for _, r := range p.reads { // before anything is donated
		if !state.has(r) {
			return nil, fmt.Errorf("program %q: the state has no %q, only %q", p.name, r, state.Names())
		}
		if state.layout != nil {
			if _, err := state.Shards(r); err != nil {
				return nil, fmt.Errorf("program %q: %w", p.name, err)
			}
		}
	}
	for i, input := range inputs {
		if t, ok := input.(*tensors.Tensor); input == nil || ok && t == nil {
			return nil, fmt.Errorf("program %q: input %d is nil: give a tensor or a Go value", p.name, i)
		}
	}
	if !p.started {
		p.layout = state.layout
		p.layout.configure(p.exec, p.reads, p.updates)
	}
	if !p.layout.same(state.layout) {
		return nil, fmt.Errorf("program %q: its first state was shared by %d devices, this one by %d, or in another way: "+
			"make another program", p.name, p.layout.devices(), state.layout.devices())
	}
	devices := p.layout.devices()
	args := make([]any, 0, devices*(len(p.reads)+len(inputs)))
	if args, err = p.arguments(args, state, inputs); err != nil {
		return nil, fmt.Errorf("program %q: %w", p.name, explain(err))
	}
	outputs, err := p.call(args)
	if err != nil {
		return nil, fmt.Errorf("program %q: %w", p.name, explain(err))
	}
	if !p.started {
		p.started = true
		returnFreedMemory()
	}
	each := len(p.updates) + 1 // outputs of a device
	for i, u := range p.updates {
		if devices == 1 {
			state.Set(u, outputs[i])
			continue
		}
		shards := make([]*tensors.Tensor, devices)
		for device := range shards {
			shards[device] = outputs[device*each+i]
		}
		state.setShards(u, shards)
	}
	for device := range devices { // all have the same record
		defer outputs[device*each+each-1].FinalizeAll() //nolint:errcheck // freeing a tensor that was read
	}
	record, err = tensors.CopyFlatData[float64](outputs[each-1])
	if err != nil {
		return nil, fmt.Errorf("program %q: record: %w", p.name, explain(err)) // of the step, if it was only begun above
	}
	return record, nil
}

// compile compiles the step for a state and inputs, and leaves the state alone.
func (p *Program) compile(state *State, inputs []any) error {
	var all []shapes.Shape
	for _, r := range p.reads {
		t := state.tensors[r]
		if t == nil {
			return fmt.Errorf("program %q: the state has no %q", p.name, r)
		}
		all = append(all, t.Shape())
	}
	for _, input := range inputs {
		shape, err := shapes.FromAnyValue(input)
		if err != nil {
			return err
		}
		all = append(all, shape)
	}
	_, err := p.exec.Compile(all...)
	return err
}

// call runs the step. Devices that wait for each other must run programs in the same order, so that programs on several
// devices run one at a time.
func (p *Program) call(args []any) ([]*tensors.Tensor, error) {
	if p.layout != nil {
		p.engine.together.Lock()
		defer p.engine.together.Unlock()
	}
	return p.exec.Call(args...)
}

// arguments appends the arguments of each device, device after device: the entries that the step reads, donated if it
// replaces them, and the inputs.
func (p *Program) arguments(args []any, state *State, inputs []any) ([]any, error) {
	for device := range p.layout.devices() {
		for _, r := range p.reads {
			t := state.tensors[r]
			if p.layout != nil {
				t = state.shards[r][device]
			}
			if !slices.Contains(p.updates, r) {
				args = append(args, t)
				continue
			}
			donated, err := graph.DonateTensorBuffer(t, p.engine.backend, backends.DeviceNum(device))
			if err != nil {
				return nil, fmt.Errorf("%q: %w", r, err)
			}
			args = append(args, donated)
		}
		for i, input := range inputs {
			input, err := forDevice(input, device, p.engine.backend)
			if err != nil {
				return nil, fmt.Errorf("input %d: %w", i, err)
			}
			args = append(args, input)
		}
	}
	return args, nil
}

// Close frees the compiled program.
func (p *Program) Close() { p.exec.Finalize() }

// Floats makes a float32 or float64 tensor on the host.
func Floats(dtype DType, values []float64, dims ...int) *tensors.Tensor {
	if dtype == Float64 {
		return tensors.FromFlatDataAndDimensions(values, dims...) // a copy
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

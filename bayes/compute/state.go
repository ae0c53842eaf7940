package compute

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"
)

// State is a set of named tensors on the engine's devices, which Programs read and replace.
type State struct {
	engine  *Engine
	layout  *layout                      // over several devices; nil: one
	tensors map[string]*tensors.Tensor   // on one device; with several devices, those that no program has read yet
	shards  map[string][]*tensors.Tensor // with several devices: each one's part
}

// NewState is an empty state on the engine's first device.
func NewState(engine *Engine) *State {
	return &State{engine: engine, tensors: map[string]*tensors.Tensor{}}
}

// NewShardedState is an empty state that several devices share. With one device it is a NewState.
func NewShardedState(engine *Engine, sharding Sharding) (*State, error) {
	s := NewState(engine)
	if sharding.Devices <= 1 {
		return s, nil
	}
	if err := engine.CheckDevices(sharding.Devices, sharding.Devices); err != nil {
		return nil, fmt.Errorf("compute: a state on %w", err)
	}
	s.shards = map[string][]*tensors.Tensor{}
	var err error
	s.layout, err = newLayout(sharding)
	return s, err
}

// Set puts a whole tensor into the state, which owns it from then on.
func (s *State) Set(name string, t *tensors.Tensor) {
	if old := s.tensors[name]; old != nil && old != t {
		old.FinalizeAll() //nolint:errcheck // it may be freed already
	}
	s.tensors[name] = t
	s.freeShards(name)
}

// setShards puts each device's part into the state.
func (s *State) setShards(name string, shards []*tensors.Tensor) {
	if old := s.tensors[name]; old != nil {
		old.FinalizeAll() //nolint:errcheck // it may be freed already
		delete(s.tensors, name)
	}
	s.freeShards(name)
	s.shards[name] = shards
}

func (s *State) freeShards(name string) {
	for _, shard := range s.shards[name] {
		shard.FinalizeAll() //nolint:errcheck // it may be freed already
	}
	delete(s.shards, name)
}

// has says whether there is such an entry.
func (s *State) has(name string) bool { return s.tensors[name] != nil || s.shards[name] != nil }

// Shards returns each device's part of an entry: on one device the tensor itself. The state still owns them, and the
// next step may free them: make copies to keep them.
func (s *State) Shards(name string) ([]*tensors.Tensor, error) {
	if !s.has(name) {
		return nil, fmt.Errorf("the state has no %q, only %q", name, s.Names())
	}
	if s.layout == nil {
		return []*tensors.Tensor{s.tensors[name]}, nil
	}
	if s.shards[name] == nil {
		shards, err := s.layout.split(name, s.tensors[name])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, explain(err))
		}
		s.setShards(name, shards)
	}
	return s.shards[name], nil
}

// Names lists the tensors of the state, sorted.
func (s *State) Names() []string {
	names := make([]string, 0, len(s.tensors)+len(s.shards))
	for name := range s.tensors {
		names = append(names, name)
	}
	for name := range s.shards {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Close frees the tensors.
func (s *State) Close() {
	for _, t := range s.tensors {
		t.FinalizeAll() //nolint:errcheck // a tensor donated to a failed step is freed already
	}
	clear(s.tensors)
	for name := range s.shards {
		s.freeShards(name)
	}
}

// Host copies the named tensors to the host, all of them if no name is given.
func (s *State) Host(names ...string) (map[string]*tensors.Tensor, error) {
	if len(names) == 0 {
		names = s.Names()
	}
	copies := map[string]*tensors.Tensor{}
	for _, name := range names {
		if !s.has(name) {
			return nil, fmt.Errorf("the state has no %q, only %q", name, s.Names())
		}
		local, err := s.host(name)
		if err != nil {
			return nil, fmt.Errorf("copying %q to the host: %w", name, explain(err))
		}
		copies[name] = local
	}
	return copies, nil
}

// Read calls read with the named tensor, which is not to be kept or changed. It saves Host's copy where one device has
// the tensor: an accelerator's is copied to the host once, a CPU's not at all.
func (s *State) Read(name string, read func(*tensors.Tensor) error) error {
	if t := s.tensors[name]; t != nil {
		return read(t)
	}
	copies, err := s.Host(name)
	if err != nil {
		return err
	}
	defer copies[name].FinalizeAll() //nolint:errcheck // freeing a copy
	return read(copies[name])
}

func (s *State) host(name string) (*tensors.Tensor, error) {
	if shards := s.shards[name]; shards != nil {
		return s.layout.join(name, shards)
	}
	return s.tensors[name].LocalClone()
}

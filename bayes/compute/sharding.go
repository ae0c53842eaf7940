package compute

import (
	"fmt"
	"slices"
	"strings"

	backends "github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Sharding says how several devices share a State: entries with a particle axis are divided along it into parts of
// equal size, one for each device; all others are whole on every device. The zero value is one device. Programs are
// written for whole tensors in either case; XLA divides the work accordingly, and inserts the communication between
// devices, such as for sums over particles.
type Sharding struct {
	Devices int // number of devices that share the particles, the first of the engine; 0 means 1
	// Particles are the names of the entries whose first axis is the particles'. A name that ends in "/" stands for all
	// that begin with it. (Shapes do not suffice, since other axes may have the same size.)
	Particles []string
}

// cuts says whether the entry is divided between the devices.
func (s Sharding) cuts(name string) bool {
	return slices.ContainsFunc(s.Particles, func(p string) bool {
		return p == name || strings.HasSuffix(p, "/") && strings.HasPrefix(name, p)
	})
}

// Devices is the number of the engine's devices, for Sharding: 1 on the Go backend, and on a CPU unless the
// configuration asks for more, which is useful for tests only, since they share the same processors.
func (e *Engine) Devices() int { return max(1, int(e.backend.NumDevices())) }

// CheckDevices returns an error unless the engine has this number of devices and they can share the particles equally.
func (e *Engine) CheckDevices(devices, particles int) error {
	if devices < 1 {
		return fmt.Errorf("%d devices: there must be at least 1", devices)
	}
	if have := e.Devices(); devices > have {
		return fmt.Errorf("%d devices, but the engine %s has %d: use at most so many (a CPU can be made several devices: "+
			"see compute.Open)", devices, e.Name(), have)
	}
	if rest := particles % devices; rest != 0 {
		advice := fmt.Sprint(particles - rest + devices)
		if particles > devices {
			advice = fmt.Sprintf("%d or %s", particles-rest, advice)
		}
		return fmt.Errorf("%d devices cannot share %d equally: take %s", devices, particles, advice)
	}
	return nil
}

// layout is a Sharding over more than one device in GoMLX's terms. nil is one device.
type layout struct {
	Sharding
	mesh       *distributed.DeviceMesh
	cut, whole *distributed.ShardingSpec
}

const particleAxis = "particles" // of the mesh

func newLayout(s Sharding) (*layout, error) {
	if s.Devices <= 1 {
		return nil, nil
	}
	mesh, err := distributed.NewDeviceMesh([]int{s.Devices}, []string{particleAxis})
	if err != nil {
		return nil, err
	}
	cut, err := distributed.BuildSpec(mesh).S(particleAxis).Done()
	return &layout{s, mesh, cut, distributed.NewReplicatedShardingSpec(mesh)}, err
}

func (l *layout) same(other *layout) bool {
	if l == nil || other == nil {
		return l == other
	}
	return l.Devices == other.Devices && slices.Equal(l.Particles, other.Particles)
}

// devices is the number of devices.
func (l *layout) devices() int {
	if l == nil {
		return 1
	}
	return l.Devices
}

func (l *layout) spec(name string) *distributed.ShardingSpec {
	if l.cuts(name) {
		return l.cut
	}
	return l.whole
}

// configure sets the sharding of an Exec's inputs and outputs. The inputs after the state's entries, and the last
// output, the record, are whole on all devices.
func (l *layout) configure(exec *graph.Exec, reads, updates []string) {
	if l == nil {
		return
	}
	specs := func(names []string) []*distributed.ShardingSpec {
		var specs []*distributed.ShardingSpec
		for _, name := range names {
			specs = append(specs, l.spec(name))
		}
		return append(specs, l.whole) // the last holds for all that follow
	}
	exec.AutoSharding(l.mesh).WithInputShardingSpecs(specs(reads)...).WithOutputShardingSpecs(specs(updates)...)
}

// split makes each device's part of a tensor. The tensor may be freed afterwards.
func (l *layout) split(name string, whole *tensors.Tensor) ([]*tensors.Tensor, error) {
	shards := make([]*tensors.Tensor, l.Devices)
	if !l.cuts(name) {
		for i := range shards {
			var err error
			if shards[i], err = whole.LocalClone(); err != nil {
				return nil, err
			}
		}
		return shards, nil
	}
	shape := whole.Shape().Clone()
	if shape.Rank() == 0 || shape.Dim(0)%l.Devices != 0 {
		return nil, fmt.Errorf("its shape is %s: %d devices cannot share the first axis equally", shape, l.Devices)
	}
	shape.Dimensions[0] /= l.Devices
	var inner error
	err := whole.ConstBytes(func(from []byte) {
		size := len(from) / l.Devices
		for i := range shards {
			shards[i] = tensors.FromShape(shape)
			if inner = shards[i].MutableBytes(func(to []byte) { copy(to, from[i*size:(i+1)*size]) }); inner != nil {
				return
			}
		}
	})
	if err == nil {
		err = inner
	}
	return shards, err
}

// join copies the whole tensor to the host.
func (l *layout) join(name string, shards []*tensors.Tensor) (*tensors.Tensor, error) {
	if !l.cuts(name) {
		return shards[0].LocalClone()
	}
	shape := shards[0].Shape().Clone()
	shape.Dimensions[0] *= l.Devices
	whole := tensors.FromShape(shape)
	var inner error
	err := whole.MutableBytes(func(to []byte) {
		for _, shard := range shards {
			if inner = shard.ConstBytes(func(from []byte) { to = to[copy(to, from):] }); inner != nil {
				return
			}
		}
	})
	if err == nil {
		err = inner
	}
	return whole, err
}

// forDevice is an input of a Program on one of its devices: a Go value may go to all, a tensor lies on one.
func forDevice(input any, device int, backend backends.Backend) (any, error) {
	t, ok := input.(*tensors.Tensor)
	if !ok || device == 0 {
		return input, nil
	}
	local, err := t.LocalClone()
	if err != nil {
		return nil, err
	}
	return graph.DonateTensorBuffer(local, backend, backends.DeviceNum(device))
}

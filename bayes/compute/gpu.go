package compute

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gobnn/bayes/compute/accelerator"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// machine is where GPUs and TPUs are looked for; tests replace it.
var machine accelerator.Machine

// visibleOption is go-xla's option of a configuration for the numbers of the GPUs to use, such as "0;2".
const visibleOption = "visible_devices"

// resolve replaces the short names of plugins, "cuda", "tpu" and "cpu", in what follows "xla:" in a configuration by
// the first installed plugin of that kind; what is no such name, or is not installed, stays as it is.
func resolve(argument string) (string, error) {
	name, options, more := strings.Cut(argument, ",")
	if name != "cuda" && name != "tpu" && name != "cpu" {
		return argument, nil
	}
	for _, plugin := range installedPlugins() {
		if strings.Contains(strings.ToLower(filepath.Base(plugin)), name) {
			if more {
				plugin += "," + options
			}
			return plugin, nil
		}
	}
	command := setupCommand
	if name != "cpu" {
		command += " -" + name
	}
	return "", fmt.Errorf("%w: none for %q is installed; `%s` installs one", ErrNoPlugin, name, command)
}

// option is the value of an option of a configuration.
func option(argument, name string) (value string, set bool) {
	_, options, _ := strings.Cut(argument, ",")
	for part := range strings.SplitSeq(options, ",") {
		if value, ok := strings.CutPrefix(part, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// silent is the ErrSilent of a driver that hangs, kept so that a process waits for it only once, not in every Open.
// enginesMu guards it.
var silent error

// checkAccelerator checks that a plugin for CUDA or TPUs can work here, before it is loaded, and returns the GPUs that
// it is to use; nil for other plugins. See accelerator.Machine.Check for the errors. The caller holds enginesMu.
func checkAccelerator(argument string) ([]accelerator.GPU, error) {
	plugin, _, _ := strings.Cut(argument, ",")
	if accelerator.IsTPU(plugin) {
		if err := machine.CheckTPU(); err != nil {
			return nil, fmt.Errorf("backend \"xla:%s\": %w", argument, err)
		}
	}
	if !accelerator.IsCUDA(plugin) {
		return nil, nil
	}
	var numbers []int
	if value, set := option(argument, visibleOption); set {
		for text := range strings.SplitSeq(value, ";") {
			n, err := strconv.Atoi(text)
			if err != nil {
				return nil, fmt.Errorf("backend \"xla:%s\": %s is %q: it must be the numbers of GPUs, such as 1 or 0;1", argument,
					visibleOption, value)
			}
			numbers = append(numbers, n)
		}
		slices.Sort(numbers) // whatever their order, XLA's devices are in this one
		numbers = slices.Compact(numbers)
	}
	if silent != nil {
		return nil, silent
	}
	gpus, err := machine.Check(plugin, numbers)
	if err != nil {
		err = fmt.Errorf("backend \"xla:%s\": %w", argument, err)
	}
	if errors.Is(err, accelerator.ErrSilent) {
		silent = err
	}
	return gpus, err
}

// prepareCUDA sets the environment variables that CUDA and XLA read, where the user has not set them. It returns the
// configuration with float32 products computed in float32. go-xla's default on CUDA is TensorFloat-32, whose products
// have three digits, too few for the difference of two log-densities over many rows. ",tf32=true" asks for it.
func prepareCUDA(argument string) (string, error) {
	plugin, _, _ := strings.Cut(argument, ",")
	set := func(name, value string) error {
		if os.Getenv(name) != "" {
			return nil
		}
		return os.Setenv(name, value)
	}
	if err := set("CUDA_DEVICE_ORDER", "PCI_BUS_ID"); err != nil { // as nvidia-smi numbers them
		return "", err
	}
	if accelerator.InWheels(plugin) {
		if err := set("GOPJRT_CUDA_CHECKS", "0"); err != nil { // it looks for another layout, and warns
			return "", err
		}
	}
	if folder := accelerator.DataFolder(plugin); folder != "" {
		if err := addXLAFlag("--xla_gpu_cuda_data_dir", folder); err != nil {
			return "", err
		}
	}
	if _, set := option(argument, "tf32"); !set {
		argument += ",tf32=false"
	}
	return argument, nil
}

// Device names what the engine computes on, such as "NVIDIA H200, 139 of 140 GiB free, driver 580.95.05" or "CPU, 16
// processors".
func (e *Engine) Device() string {
	processors := fmt.Sprintf("CPU, %d processors", runtime.NumCPU())
	switch {
	case !e.IsXLA():
		return processors + ", GoMLX's Go backend"
	case len(e.gpus) > 0:
		var texts []string
		for _, gpu := range e.gpus {
			texts = append(texts, gpu.String())
		}
		return strings.Join(texts, "; ")
	case e.OnCPU():
		return processors
	}
	return e.backend.DeviceDescription(0)
}

// memory is the limit of an engine's memory on each device: the free memory of the fullest of its GPUs when it was
// opened, 0 if nothing was free. It is at most the share that XLA's allocator takes, three quarters of a GPU unless the
// option memory_fraction says otherwise.
type memory struct {
	bytes int64
	ofXLA bool // the limit is its allocator's: more is free
	host  bool // it is the machine's own
}

// String says it in an error's words.
func (m memory) String() string {
	if m.ofXLA {
		return fmt.Sprintf("XLA takes at most %s of the device (\"xla:cuda,memory_fraction=.9\" lets it take 9/10)",
			gibibytes(m.bytes))
	}
	if m.host {
		return "the machine has " + gibibytes(m.bytes)
	}
	return "the device has " + gibibytes(m.bytes) + " free"
}

// memory is the least that the first of the engine's GPUs give, on which programs for that many devices run. known is
// false where the device does not report it: then there is no limit. Nor is there one of what is planned on a CPU,
// whose caches decide; what does not fit its memory is refused by hostMemory.
func (e *Engine) memory(devices int) (least memory, known bool) {
	_, argument, _ := strings.Cut(e.config, ":")
	fraction := fractionOfXLA(argument)
	for _, gpu := range e.gpus[:min(max(devices, 1), len(e.gpus))] {
		if gpu.Memory == 0 {
			continue
		}
		m := memory{bytes: gpu.Free}
		if most := int64(fraction * float64(gpu.Memory)); most < gpu.Free {
			m = memory{bytes: most, ofXLA: true}
		}
		if !known || m.bytes < least.bytes {
			least, known = m, true
		}
	}
	return least, known
}

// fractionOfXLA is the part of all of a GPU's memory that XLA's allocator takes at most, be it at once or as it is
// needed (CreateBFCAllocator in xla/pjrt/gpu/gpu_helpers.cc). The other allocators have no such limit.
func fractionOfXLA(argument string) float64 {
	if name, set := option(argument, "allocator"); set && name != "default" && name != "bfc" {
		return 1
	}
	if value, set := option(argument, "memory_fraction"); set {
		if fraction, err := strconv.ParseFloat(value, 32); err == nil { // else go-xla has refused it
			return fraction
		}
	}
	return .75
}

// owners finds the engine with GPUs, *Engine, of a backend: a graph knows only its backend.
var owners sync.Map

// heldKey is the key of the bytes, an int64, that a graph's Program holds on a device while it runs, in the graph's
// state.
type heldKey struct{}

// memoryOf returns the limit of a graph's memory on each of its devices, and the bytes that the graph's Program holds
// of it.
func memoryOf(g *graph.Graph, devices int) (limit memory, held int64, known bool) {
	if engine, ok := owners.Load(g.Backend()); ok {
		limit, known = engine.(*Engine).memory(devices)
	}
	held, _ = g.State(heldKey{}).(int64)
	return limit, held, known
}

// checkMemory panics with errOutOfMemory if the activations that are in memory at a time do not fit the device
// together with the entries that the graph's Program reads and its inputs. The Program's results are not counted, since
// they may be made before or after the pass.
func (p Plan) checkMemory(g *graph.Graph) {
	limit, held, known := memoryOf(g, p.Devices)
	if !known {
		limit, known = memoryOfHost(g.Backend())
	}
	need := p.Bytes * int64(max(p.Concurrent, 1))
	if !known || need+held <= limit.bytes {
		return
	}
	room := max(limit.bytes-held, 0)
	parts := (need + room - 1) / max(room, 1)
	advice := fmt.Sprintf("a batch of at most 1/%d of the rows would fit", parts)
	each := max(need/int64(max(p.Chunk/max(p.Devices, 1), 1)), 1) // per particle that a device evaluates at a time
	switch fit := room / each; {
	case room == 0 && !limit.host:
		advice = fullAdvice
	case p.Devices > 1 && !limit.host:
		advice = fmt.Sprintf("%d devices, or 1/%d of the particles, would do", int64(p.Devices)*parts, parts)
	case fit >= 1:
		advice = fmt.Sprintf("a Chunk of at most %d would fit", fit)
	}
	free := limit.String()
	if held > 0 {
		free += ", of which the state takes " + gibibytes(held)
	}
	panic(fmt.Errorf("%w before the start: %d particles at a time take about %s, %s: %s", errOutOfMemory, p.Chunk,
		gibibytes(need), free, advice))
}

// fullAdvice is the cure where nothing is free.
const fullAdvice = "end the programs that `nvidia-smi` lists, or name another GPU"

// demand is the memory that a Program needs on a device at a time: for the entries that it reads, its inputs and its
// results. Entries that it replaces count twice, since old and new values exist together: go-xla does not tell XLA that
// they may share memory. Not counted are other entries and states, and what XLA needs within a step; for a pass over
// particles see Plan.checkMemory.
type demand struct {
	bytes   int64
	most    int64 // bytes of the largest part
	largest string
}

func (d *demand) add(name string, bytes int64) {
	if d.bytes += bytes; bytes > d.most {
		d.largest, d.most = name, bytes
	}
}

// check returns errOutOfMemory if the demand does not fit each of the engine's first `devices` devices.
func (d demand) check(engine *Engine, devices int) error {
	limit, known := engine.memory(devices)
	if !known {
		limit, known = memoryOfHost(engine.Backend())
	}
	if !known || d.bytes <= limit.bytes {
		return nil
	}
	advice := fullAdvice
	switch {
	case limit.host:
		advice = fmt.Sprintf("use at most 1/%d of the particles", (d.bytes+limit.bytes-1)/limit.bytes)
	case limit.bytes > 0:
		advice = fmt.Sprintf("use at most 1/%d of the particles, or more devices", (d.bytes+limit.bytes-1)/limit.bytes)
	}
	return fmt.Errorf("%w before the start: the step's tensors take %s, most of it %q, %v: %s",
		errOutOfMemory, gibibytes(d.bytes), d.largest, limit, advice)
}

// onDevice returns the bytes that a state's entry of this whole shape takes on each device.
func (p *Program) onDevice(name string, shape shapes.Shape) int64 {
	bytes := int64(shape.ByteSize())
	if p.layout != nil && p.layout.cuts(name) {
		bytes /= int64(p.layout.devices())
	}
	return bytes
}

// checkMemory returns errOutOfMemory if the entries that the program reads and its inputs do not fit a device
// together. It is called before anything is copied to the device; the step's results are counted too, when its graph is
// built.
func (p *Program) checkMemory(state *State, inputs []any) error {
	var need demand
	for _, name := range p.reads {
		if t := state.tensors[name]; t != nil {
			need.add(name, p.onDevice(name, t.Shape()))
		} else if shards := state.shards[name]; shards != nil {
			need.add(name, int64(shards[0].Shape().ByteSize()))
		}
	}
	for i, input := range inputs {
		if t, ok := input.(*tensors.Tensor); ok {
			need.add(fmt.Sprint("input ", i), int64(t.Shape().ByteSize()))
		}
	}
	return need.check(p.engine, p.layout.devices())
}

// demand adds up the memory that the arguments of the program's graph need on a device: the entries that it reads, and
// its inputs.
func (p *Program) demand(args []*graph.Node) (need demand) {
	for i, arg := range args {
		if i < len(p.reads) {
			need.add(p.reads[i], p.onDevice(p.reads[i], arg.Shape()))
		} else {
			need.add(fmt.Sprint("input ", i-len(p.reads)), int64(arg.Shape().ByteSize()))
		}
	}
	return need
}

func gibibytes(bytes int64) string { return fmt.Sprintf("%.2g GiB", float64(bytes)/(1<<30)) }

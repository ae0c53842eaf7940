package compute

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"gobnn/bayes/compute/accelerator"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
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
	return "", fmt.Errorf("%w: none for %q is installed; `%s` installs one", errNoPlugin, name, command)
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

// checkAccelerator checks that a plugin for CUDA or TPUs can work here, before it is loaded, and returns the GPUs that
// it is to use; nil for other plugins. See accelerator.Machine.Check for the errors.
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
	gpus, err := machine.Check(plugin, numbers)
	if err != nil {
		return nil, fmt.Errorf("backend \"xla:%s\": %w", argument, err)
	}
	return gpus, nil
}

// prepareCUDA sets the environment variables that CUDA and XLA read. It returns the configuration with float32 products
// computed in float32. go-xla's default on CUDA is TensorFloat-32, whose products have three digits, too few for the
// difference of two log-densities over many rows. ",tf32=true" asks for it.
func prepareCUDA(argument string) string {
	plugin, _, _ := strings.Cut(argument, ",")
	setEnvironment("CUDA_DEVICE_ORDER", "PCI_BUS_ID") // as nvidia-smi numbers them
	setEnvironment("GOPJRT_CUDA_CHECKS", "0")         // go-xla looks for another layout, and warns
	if folder := accelerator.DataFolder(plugin); folder != "" {
		addXLAFlag("--xla_gpu_cuda_data_dir", folder)
	}
	if _, set := option(argument, "tf32"); !set {
		argument += ",tf32=false"
	}
	return argument
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

// room is the memory that a computation may take.
type room struct {
	bytes int64
	says  string // what has so much, in an error's words, with the bytes as %s
}

// room is the least that the first of the engine's devices have, on which programs for that many run: on the processors
// the machine's memory, of GPUs what was free when the engine was opened, but at most the share that XLA's allocator
// takes. known is false where that is not reported: then there is no limit.
func (e *Engine) room(devices int) (least room, known bool) {
	if e.OnCPU() {
		return hostMemory()
	}
	_, argument, _ := strings.Cut(e.config, ":")
	fraction := .75 // be it taken at once or as it is needed (CreateBFCAllocator in xla/pjrt/gpu/gpu_helpers.cc)
	if value, set := option(argument, "memory_fraction"); set {
		if f, err := strconv.ParseFloat(value, 32); err == nil { // else go-xla has refused it
			fraction = f
		}
	}
	for _, gpu := range e.gpus[:min(max(devices, 1), len(e.gpus))] {
		if gpu.Memory == 0 {
			continue
		}
		has := room{gpu.Free, "the device has %s free"}
		if most := int64(fraction * float64(gpu.Memory)); most < gpu.Free {
			has = room{most, "XLA takes at most %s of the device (\"xla:cuda,memory_fraction=.9\" lets it take 9/10)"}
		}
		if !known || has.bytes < least.bytes {
			least, known = has, true
		}
	}
	return least, known
}

// check returns errOutOfMemory if what is needed does not fit beside what the state takes; what and fewer name it and
// the cure.
func (r room) check(need, held int64, what, fewer string) error {
	if need+held <= r.bytes {
		return nil
	}
	has := fmt.Sprintf(r.says, gibibytes(r.bytes))
	if held > 0 {
		has += ", of which the state takes " + gibibytes(held)
	}
	cure := "end the programs that `nvidia-smi` lists, or name another GPU"
	if left := r.bytes - held; left > 0 {
		cure = fmt.Sprintf("take at most 1/%d of the %s", (need+left-1)/left, fewer)
	}
	return fmt.Errorf("%w before the start: %s take %s, %s: %s", errOutOfMemory, what, gibibytes(need), has, cure)
}

// heldKey is the key of the bytes, an int64, that a graph's Program holds on a device while it runs, in the graph's
// state.
type heldKey struct{}

// roomOf is the room of a graph on each of its devices, and the bytes of it that the graph's Program holds.
func roomOf(g *graph.Graph, devices int) (limit room, held int64, known bool) {
	if engine := engineOf(g.Backend()); engine != nil {
		limit, known = engine.room(devices)
	}
	held, _ = g.State(heldKey{}).(int64)
	return limit, held, known
}

// checkMemory panics with errOutOfMemory if the activations that are in memory at a time do not fit the device
// together with the entries that the graph's Program reads and its inputs. The Program's results are not counted, since
// they may be made before or after the pass.
func (p Plan) checkMemory(g *graph.Graph) {
	limit, held, known := roomOf(g, p.Devices)
	if !known {
		return
	}
	fewer := "particles of a Chunk, or of the rows of a batch"
	if p.Devices > 1 {
		fewer = "particles, or more devices"
	}
	what := fmt.Sprintf("%d particles at a time", p.Chunk)
	if err := limit.check(p.Bytes*int64(max(p.Concurrent, 1)), held, what, fewer); err != nil {
		panic(err)
	}
}

// demand is the memory that a Program needs on a device at a time: for the entries that it reads, its inputs and its
// results. Entries that it replaces count twice, since old and new values exist together: go-xla does not tell XLA that
// they may share memory. Not counted are other entries and states, and what XLA needs within a step; for a pass over
// particles see Plan.checkMemory.
type demand struct {
	bytes   int64
	most    int64 // bytes of the largest part
	largest string
}

// add adds a tensor of this whole shape.
func (d *demand) add(p *Program, name string, shape shapes.Shape) {
	bytes := int64(shape.ByteSize())
	if p.layout != nil && p.layout.cuts(name) {
		bytes /= int64(p.layout.devices())
	}
	if d.bytes += bytes; bytes > d.most {
		d.largest, d.most = name, bytes
	}
}

// check returns errOutOfMemory if the demand does not fit each of the program's devices.
func (d demand) check(p *Program) error {
	limit, known := p.engine.room(p.layout.devices())
	if !known {
		return nil
	}
	return limit.check(d.bytes, 0, fmt.Sprintf("the step's tensors, most of them %q,", d.largest),
		"particles, or more devices")
}

func gibibytes(bytes int64) string { return fmt.Sprintf("%.2g GiB", float64(bytes)/(1<<30)) }

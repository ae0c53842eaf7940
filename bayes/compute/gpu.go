package compute

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"gobnn/bayes/compute/accelerator"

	backends "github.com/gomlx/compute"
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
	}
	gpus, err := machine.Check(plugin, numbers)
	if err != nil {
		return nil, fmt.Errorf("backend \"xla:%s\": %w", argument, err)
	}
	return gpus, nil
}

// prepareCUDA sets what CUDA and XLA read from the environment, where the user has not, and returns the configuration
// with float32 products computed in float32: go-xla's default on CUDA is TensorFloat-32, whose products have three
// digits, too few for the difference of two log-densities over many rows. ",tf32=true" asks for it.
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
	if folder := accelerator.DataFolder(plugin); folder != "" {
		if err := set("GOPJRT_CUDA_CHECKS", "0"); err != nil { // it looks for another layout, and warns
			return "", err
		}
		const flag = "--xla_gpu_cuda_data_dir="
		if flags := os.Getenv("XLA_FLAGS"); !strings.Contains(flags, flag) {
			if err := os.Setenv("XLA_FLAGS", strings.TrimSpace(flags+" "+flag+folder)); err != nil {
				return "", err
			}
		}
	}
	if _, set := option(argument, "tf32"); !set {
		argument += ",tf32=false"
	}
	return argument, nil
}

// Device says what the engine computes on, such as "NVIDIA H200, 139 of 140 GiB free, driver 580.95.05" or "CPU, 16
// processors".
func (e *Engine) Device() string {
	processors := fmt.Sprintf("CPU, %d processors", runtime.NumCPU())
	_, argument, _ := strings.Cut(e.config, ":")
	switch {
	case !e.IsXLA():
		return processors + ", GoMLX's Go backend"
	case len(e.gpus) > 0:
		var texts []string
		for _, gpu := range e.gpus {
			texts = append(texts, gpu.String())
		}
		return strings.Join(texts, "; ")
	case isCPU(argument):
		return processors
	}
	return e.backend.DeviceDescription(0)
}

// Memory is the bytes that the engine may use on each device: what was free on the fullest of its GPUs when it was
// opened. 0 is unknown, and no limit: on a CPU the system's swapping is.
func (e *Engine) Memory() int64 {
	var least int64
	for _, gpu := range e.gpus {
		if least == 0 || gpu.Free > 0 && gpu.Free < least {
			least = gpu.Free
		}
	}
	return least
}

// limits are the engines' memory by their backends, which is what a graph knows. Values are int64.
var limits sync.Map

func limitOf(backend backends.Backend) int64 {
	if limit, ok := limits.Load(backend); ok {
		return limit.(int64)
	}
	return 0
}

// checkMemory panics with an ErrOutOfMemory if the activations that are in memory at a time do not fit the device.
func (p Plan) checkMemory(g *graph.Graph) {
	limit := limitOf(g.Backend())
	need := p.Bytes * int64(max(p.Concurrent, 1))
	if limit == 0 || need <= limit {
		return
	}
	advice := fmt.Sprintf("a batch of at most 1/%d of the rows would fit", (need+limit-1)/limit)
	each := max(need/int64(max(p.Chunk/max(p.Devices, 1), 1)), 1) // per particle that a device evaluates at a time
	switch fit := limit / each; {
	case p.Devices > 1:
		advice = fmt.Sprintf("%d devices, or 1/%d of the particles, would do", int64(p.Devices)*((need+limit-1)/limit),
			(need+limit-1)/limit)
	case fit >= 1:
		advice = fmt.Sprintf("a Chunk of at most %d would fit", fit)
	}
	panic(fmt.Errorf("%w before the start: %d particles at a time take about %s, the device has %s free: %s",
		ErrOutOfMemory, p.Chunk, gibibytes(need), gibibytes(limit), advice))
}

// checkMemory is an ErrOutOfMemory if what the program reads, replaces and is given cannot be on the device together.
func (p *Program) checkMemory(state *State, inputs []any) error {
	limit := p.engine.Memory()
	if limit == 0 {
		return nil
	}
	var need int64
	var largest string
	var most int64
	add := func(name string, bytes int64) {
		if need += bytes; bytes > most {
			largest, most = name, bytes
		}
	}
	for _, name := range p.reads {
		if t := state.tensors[name]; t != nil {
			bytes := int64(t.Shape().ByteSize())
			if state.layout != nil && state.layout.cuts(name) {
				bytes /= int64(state.layout.devices())
			}
			add(name, bytes)
		} else if shards := state.shards[name]; shards != nil {
			add(name, int64(shards[0].Shape().ByteSize()))
		}
	}
	for i, input := range inputs {
		if t, ok := input.(*tensors.Tensor); ok {
			add(fmt.Sprint("input ", i), int64(t.Shape().ByteSize()))
		}
	}
	if need <= limit {
		return nil
	}
	return fmt.Errorf("%w before the start: the state takes %s, most of it %q, the device has %s free: use at most 1/%d "+
		"of the particles, or more devices", ErrOutOfMemory, gibibytes(need), largest, gibibytes(limit), (need+limit-1)/limit)
}

func gibibytes(bytes int64) string { return fmt.Sprintf("%.2g GiB", float64(bytes)/(1<<30)) }

package compute_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/accelerator"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/environment"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// gpus makes this a machine with such GPUs, in nvidia-smi's words, and with an environment for CUDA whose plugin is
// the one for CPUs under another name: what is tested is which device is chosen, not what it computes.
func gpus(t *testing.T, smi string) (plugin string) {
	t.Helper()
	cpu := xlaPlugin(t)
	cache := nothingInstalled(t)
	for _, name := range []string{"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "GOPJRT_CUDA_CHECKS", "XLA_FLAGS"} {
		t.Setenv(name, "") // what an engine sets is undone
	}
	if err := os.Unsetenv("CUDA_VISIBLE_DEVICES"); err != nil { // set and empty it would hide them
		t.Fatal(err)
	}
	t.Cleanup(compute.SetMachine(accelerator.Machine{Root: t.TempDir(), SMI: func() (string, error) {
		if smi == "" {
			return "", errors.New("nvidia-smi: not found")
		}
		return smi, nil
	}}))
	plugin = filepath.Join(cache, "cuda", "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so")
	link(t, cpu, plugin)
	link(t, cpu, filepath.Join(cache, "env/lib/python3.13/site-packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"))
	for _, file := range []string{"cuda/" + environment.Stamp, "env/" + environment.Stamp,
		"cuda/nvidia/cu13/nvvm/libdevice/libdevice.10.bc"} {
		write(t, filepath.Join(cache, file), "")
	}
	return plugin
}

func open(t *testing.T, config string) *compute.Engine {
	t.Helper()
	engine := computetest.Must(compute.Open(config))
	t.Cleanup(engine.Close)
	return engine
}

const (
	big    = "GPU-1, NVIDIA H200, 580.95.05, 143771, 143000\n"
	small  = "GPU-2, NVIDIA T1000, 580.95.05, 4096, 16\n"
	full   = "GPU-3, NVIDIA T4, 580.95.05, 15360, 0\n"
	shared = "GPU-4, NVIDIA GB10, 580.95.05, [N/A], [N/A]\n"
)

func TestGPUs(t *testing.T) {
	for _, c := range []struct {
		smi, options string
		device       string // "": an error
		memory       int64  // -1: unknown
		says         string
	}{
		{big, "", "NVIDIA H200, 140 of 140 GiB free, driver 580.95.05", 143771 << 18 * 3, ""}, // what XLA takes at most
		{big, ",memory_fraction=0.5", "NVIDIA H200, 140 of 140 GiB free, driver 580.95.05", 143771 << 19, ""},
		{big + small, ",visible_devices=1", "NVIDIA T1000, 0 of 4 GiB free, driver 580.95.05", 16 << 20, ""},
		{big + small, "", "NVIDIA H200, 140 of 140 GiB free, driver 580.95.05; NVIDIA T1000, 0 of 4 GiB free, driver " +
			"580.95.05", 16 << 20, ""},
		{full, "", "NVIDIA T4, 0 of 15 GiB free, driver 580.95.05", 0, ""},
		{big + full, "", "NVIDIA H200, 140 of 140 GiB free, driver 580.95.05; NVIDIA T4, 0 of 15 GiB free, driver " +
			"580.95.05", 0, ""},
		{shared, "", "NVIDIA GB10, driver 580.95.05", -1, ""},
		{big, ",visible_devices=1", "", 0, "no such GPU: number 1 is asked for, there are 1"},
		{big, ",visible_devices=first", "", 0, `visible_devices is "first"`},
		{strings.Replace(big, "580.95.05", "550.54", 1), "", "", 0, "driver is too old: it is 550.54"},
		{"", "", "", 0, "nvidia-smi -L"},
	} {
		name := strings.ReplaceAll(fmt.Sprintf("%d GPUs%s", strings.Count(c.smi, "\n"), c.options), ",", " ")
		t.Run(name, func(t *testing.T) {
			plugin := gpus(t, c.smi)
			if c.device == "" {
				for _, config := range []string{"xla:cuda", "xla:" + plugin} {
					_, err := compute.Open(config + c.options)
					computetest.WantError(t, config, err, c.says)
				}
				t.Setenv("GOMLX_BACKEND", "xla:cuda"+c.options)
				_, err := compute.Default()
				computetest.WantError(t, "asked for by GOMLX_BACKEND", err, c.says)
				return
			}
			engine := open(t, "xla:cuda"+c.options)
			memory, known := engine.Memory()
			if !known {
				memory = -1
			}
			if got := engine.Device(); got != c.device || memory != c.memory {
				t.Errorf("computes on %q with %d bytes, want %q with %d", got, memory, c.device, c.memory)
			}
			if got, want := engine.String(), "xla:"+plugin+c.options; got != want {
				t.Errorf("the engine is %s, want %s", got, want)
			}
			if by := open(t, "xla:"+plugin+c.options); by != engine {
				t.Error("the plugin by its name and by its path are two engines")
			}
			data := "--xla_gpu_cuda_data_dir=" + filepath.Join(filepath.Dir(plugin), "..", "..", "nvidia", "cu13")
			if got := os.Getenv("XLA_FLAGS"); got != data {
				t.Errorf("XLA_FLAGS=%s, want %s", got, data)
			}
			if got := os.Getenv("CUDA_DEVICE_ORDER"); got != "PCI_BUS_ID" {
				t.Errorf("CUDA_DEVICE_ORDER=%s", got)
			}
			for engine, want := range map[*compute.Engine]bool{engine: false, open(t, "xla:cuda,tf32=true"+c.options): true} {
				coarse := reflect.ValueOf(engine.Backend()).Elem().FieldByName("DotGeneralUseTF32") // of go-xla's
				if coarse.Bool() != want {
					t.Errorf("%s: products in TensorFloat-32: %v", engine, !want)
				}
			}
		})
	}
}

// CUDA_VISIBLE_DEVICES that is set and empty hides all GPUs.
func TestHidden(t *testing.T) {
	gpus(t, big)
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	_, none := compute.Open("xla:cuda")
	computetest.WantError(t, "a GPU", none, "no GPU")
	engine, err := compute.Default()
	if err != nil || !engine.OnCPU() || !engine.IsXLA() {
		t.Fatalf("Default opens %v, %v; want XLA on the CPU", engine, err)
	}
	engine.Close()
}

// Where a plugin for CUDA is installed and no GPU is, Default computes on the CPU and says why; one asked for is an
// error.
func TestPassedOver(t *testing.T) {
	plugin := gpus(t, "")
	compute.NoticeAgain()
	var engine *compute.Engine
	said := onStderr(t, func() { engine = computetest.Must(compute.Default()) })
	t.Cleanup(engine.Close)
	t.Setenv("GOMLX_BACKEND", "xla:"+strings.Replace(plugin, "xla_cuda_plugin", "libtpu", 1))
	computetest.NoError(t, os.Rename(plugin, strings.Replace(plugin, "xla_cuda_plugin", "libtpu", 1)))
	if _, err := compute.Default(); err == nil || !strings.Contains(err.Error(), "no TPU") {
		t.Errorf("a TPU asked for where none is: %v", err)
	}
	if !strings.HasPrefix(engine.Device(), "CPU, ") {
		t.Errorf("computes on %s", engine.Device())
	}
	for _, want := range []string{"no GPU", "--gpus all", "computing on CPU, "} {
		if !strings.Contains(said, want) {
			t.Errorf("it says %q, not %q", said, want)
		}
	}
}

// What does not fit a GPU's memory is refused before anything is computed, with what would fit.
func TestTooLittleMemory(t *testing.T) {
	gpus(t, small) // 16 MiB free
	engine := open(t, "xla:cuda")
	total := func(plan compute.Plan, phi *Node) *Node {
		_, sums := plan.Over(phi, compute.Pass{
			Chunk: func(_ compute.Span, phi *Node, _ []*Node) (rows, sums []*Node) {
				return nil, []*Node{ReduceAllSum(phi)}
			},
			Merge: func(a, b []*Node) []*Node { return []*Node{Add(a[0], b[0])} },
		})
		return sums[0]
	}
	over := func(plan compute.Plan) error {
		exec, err := NewExec(engine.Backend(), func(phi *Node) *Node { return total(plan, phi) })
		if err != nil {
			return err
		}
		defer exec.Finalize()
		_, err = exec.Call(zeros(plan.Particles, 1))
		return err
	}
	plan := func(particles int, bytes int64, chunk int) compute.Plan {
		return compute.NewPlan(particles, bytes, chunk)
	}
	for _, c := range []struct {
		plan compute.Plan
		says string
	}{
		{plan(100, 1<<20, 50), "50 particles at a time take 0.049 GiB, the device has 0.016 GiB free: take at most 1/4 of " +
			"the particles of a Chunk, or of the rows of a batch"},
		{plan(4, 40<<20, 0), "at most 1/3 of the particles of a Chunk, or of the rows"},
		{compute.Plan{Particles: 100, Chunk: 100, Bytes: 50 << 20, Devices: 2}, "1/4 of the particles, or more devices"},
	} {
		if err := over(c.plan); !errors.Is(err, compute.ErrOutOfMemory) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: error %v, want ErrOutOfMemory that says %q", c.plan, err, c.says)
		}
	}

	program, state := newProgram(t, engine, []string{"x", "y"}, []string{"x"},
		func(s compute.Nodes, _ []*Node) (compute.Nodes, *Node) {
			return compute.Nodes{"x": OnePlus(s["x"])}, ReduceAllSum(s["y"])
		}, map[string]*tensors.Tensor{"y": zeros(1), "x": zeros(5, 1<<20)}) // 20 MiB
	if _, err := program.Run(state); !errors.Is(err, compute.ErrOutOfMemory) ||
		!strings.Contains(err.Error(), `most of them "x"`) || !strings.Contains(err.Error(), "at most 1/3 of the particles") {
		t.Errorf("a state of 20 MiB: error %v", err)
	}
	state.Set("x", zeros(1, 1<<20)) // 4 MiB
	if record, err := program.Run(state); err != nil || record[0] != 0 {
		t.Errorf("a state of 4 MiB: %v, %v", record, err)
	}

	// What fits alone, but not together: 10 MiB of a state, and 10 MiB of activations or 10 MiB that a step adds.
	pass := plan(80, 128<<10, 80) // 10 MiB
	activations := func(s compute.Nodes, _ []*Node) (compute.Nodes, *Node) { return nil, total(pass, s["x"]) }
	added := func(s compute.Nodes, _ []*Node) (compute.Nodes, *Node) {
		return compute.Nodes{"z": OnePlus(s["x"])}, ReduceAllSum(s["x"])
	}
	for _, c := range []struct {
		name    string
		columns int // of the state, of 80 rows
		updates []string
		step    compute.Step
		says    string // empty: it fits
	}{
		{"activations", 1 << 15, nil, activations,
			"0.016 GiB free, of which the state takes 0.0098 GiB: take at most 1/2 of the particles of a Chunk"},
		{"fewer of the state", 1 << 14, nil, activations, ""},
		{"added", 1 << 15, []string{"z"}, added, "most of them \"x\", take 0.02 GiB, the device has 0.016 GiB free"},
		{"less added", 1 << 14, []string{"z"}, added, ""},
	} {
		program, state := newProgram(t, engine, []string{"x"}, c.updates, c.step,
			map[string]*tensors.Tensor{"x": zeros(80, c.columns)})
		if _, err := program.Run(state); (err == nil) != (c.says == "") ||
			err != nil && (!errors.Is(err, compute.ErrOutOfMemory) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v, want ErrOutOfMemory that says %q", c.name, err, c.says)
		}
	}
}

// An accelerator evaluates as many particles at a time as an eighth of its free memory allows, not as a CPU's caches
// do, unless the user has set the chunk.
func TestChunksOfAccelerator(t *testing.T) {
	parallel := compute.NewParallelPlan(1000, 1<<20)
	plan := func(chunk int) compute.Plan { return compute.NewPlan(1000, 1<<20, chunk) }
	const free4 = "GPU-5, NVIDIA T4, 580.95.05, 15360, 4000\n" // an eighth: 500 MiB
	for _, c := range []struct {
		name string
		smi  string // empty: a CPU
		plan compute.Plan
		want int // particles of the largest chunk
	}{
		{"much memory", big, plan(0), 1000},
		{"all of it at once", big, parallel, 1000},
		{"some memory", free4, plan(0), 500},
		{"set", big, plan(40), 40},
		{"unknown memory", shared, plan(0), 25},
		{"a CPU", "", plan(0), 25},
	} {
		t.Run(c.name, func(t *testing.T) {
			engine := "xla:cuda"
			if gpus(t, c.smi); c.smi == "" {
				engine = "xla:cpu"
			}
			largest := 0
			exec := computetest.Must(NewExec(open(t, engine).Backend(), func(phi *Node) *Node {
				rows, _ := c.plan.Over(phi, compute.Pass{Rows: [][]int{{}},
					Chunk: func(s compute.Span, phi *Node, _ []*Node) (rows, sums []*Node) {
						largest = max(largest, s.Count)
						return []*Node{ReduceSum(phi, -1)}, nil
					}})
				return rows[0]
			}))
			defer exec.Finalize()
			computetest.Must(exec.Call(zeros(c.plan.Particles, 1)))
			if largest != c.want {
				t.Errorf("%d particles at a time, want %d", largest, c.want)
			}
		})
	}
}

// On an accelerator a step is only begun when it is called, and inputs are copied at once: a walk's records are those
// of a plugin that is waited for, to the bit, though each step's inputs are overwritten after it. A plugin is opened
// once in a process, so that each way runs in one of its own.
func TestAsync(t *testing.T) {
	if way := os.Getenv("GOBNN_TEST_ASYNC"); way != "" {
		walkAsync(t, way)
		return
	}
	xlaPlugin(t)
	records := map[string][]byte{}
	for _, way := range []string{"cuda", "cpu"} {
		command := exec.Command(os.Args[0], "-test.run=^TestAsync$")
		command.Env = append(os.Environ(), "GOBNN_TEST_ASYNC="+way, "GOBNN_EXECUTABLES=off")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", way, err, out)
		}
		records[way], _, _ = bytes.Cut(out, []byte("PASS"))
	}
	if !bytes.Equal(records["cuda"], records["cpu"]) || bytes.Count(records["cpu"], []byte("\n")) != 50 {
		t.Errorf("records\n%s\nwhere a plugin that is waited for gives\n%s", records["cuda"], records["cpu"])
	}
}

// walkAsync is what TestAsync runs: 50 steps whose inputs share memory, and whose records it prints to the bit.
func walkAsync(t *testing.T, way string) {
	gpus(t, big)
	engine := open(t, "xla:"+way)
	program, state := newProgram(t, engine, []string{"x"}, []string{"x"},
		func(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
			x := Add(Sin(Einsum("ab,cb->ac", s["x"], s["x"])), ExpandAxes(inputs[0], 0))
			return compute.Nodes{"x": x}, ReduceSum(x, 0)
		}, map[string]*tensors.Tensor{"x": compute.Floats(compute.Float64, make([]float64, 100*100), 100, 100)})
	input := make([]float64, 100)
	for step := range 50 {
		for i := range input {
			input[i] = float64((step*i)%17) / 17
		}
		record := computetest.Must(program.Run(state, input))
		fmt.Printf("%x\n", sha256.Sum256(fmt.Append(nil, record)))
	}
}

// A full GPU is no GPU of unknown memory: nothing runs there, and the message says what would do.
func TestFull(t *testing.T) {
	for _, smi := range []string{full, shared} {
		t.Run(strings.Split(smi, ", ")[1], func(t *testing.T) {
			gpus(t, smi)
			engine := open(t, "xla:cuda")
			program, state := newProgram(t, engine, nil, []string{"x"},
				func(_ compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
					return compute.Nodes{"x": inputs[0]}, inputs[0]
				}, nil)
			_, err := program.Run(state, float32(1))
			if smi == shared && err != nil {
				t.Errorf("unknown memory is no limit: %v", err)
			}
			const says = "the device has 0 GiB free: end the programs that `nvidia-smi` lists"
			if smi == full && (!errors.Is(err, compute.ErrOutOfMemory) || !strings.Contains(err.Error(), says)) {
				t.Errorf("error %v, want ErrOutOfMemory that says %q", err, says)
			}
		})
	}
}

// Of installed plugins that for CUDA comes first, then that for TPUs, then that for CPUs. What set-up did not complete
// does not count.
func TestInstalledPlugins(t *testing.T) {
	needsXLA(t)
	for _, without := range []string{"", "env", "cuda", "tpu"} {
		cache := nothingInstalled(t)
		var want []string
		for _, p := range []struct{ folder, plugin string }{
			{"cuda", "jax_plugins/xla_cuda13/xla_cuda_plugin.so"},
			{"tpu", "libtpu/libtpu.so"},
			{"env", "lib/python3.13/site-packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"},
		} {
			folder := filepath.Join(cache, p.folder)
			files := []string{filepath.Join(folder, p.plugin), filepath.Join(folder, environment.Stamp)}
			if p.folder == without { // its set-up was killed
				files = files[:1]
			} else {
				want = append(want, files[0])
			}
			for _, file := range files {
				write(t, file, "")
			}
		}
		for range 20 { // always in this order
			if got := compute.InstalledPlugins(); !slices.Equal(got, want) {
				t.Fatalf("without the stamp of %q: plugins %q, want %q", without, got, want)
			}
		}
		if _, err := compute.Open("xla:tpu"); without == "tpu" != errors.Is(err, compute.ErrNoPlugin) {
			t.Errorf("without the stamp of %q: xla:tpu: %v", without, err)
		}
	}
}

// What the Go backend computes on names that backend, so that nobody takes it for XLA.
func TestDeviceOfGo(t *testing.T) {
	got := computetest.Go(t).Device()
	if !strings.HasPrefix(got, "CPU, ") || !strings.HasSuffix(got, ", GoMLX's Go backend") {
		t.Errorf("computes on %q", got)
	}
}

// Names that are no plugin's stay what they were, and one that is not installed names the command that installs it.
func TestPluginNames(t *testing.T) {
	needsXLA(t)
	nothingInstalled(t)
	for config, command := range map[string]string{"xla:cuda": "setup -cuda`", "xla:tpu": "setup -tpu`",
		"xla:cpu": "setup`", "xla:cuda,visible_devices=0": "setup -cuda`"} {
		if _, err := compute.Open(config); !errors.Is(err, compute.ErrNoPlugin) ||
			!strings.Contains(err.Error(), "`go run ./notebooks "+command) {
			t.Errorf("Open(%q): error %v, want ErrNoPlugin with %s", config, err, command)
		}
	}
}

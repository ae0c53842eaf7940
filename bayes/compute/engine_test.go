package compute_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/accelerator"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/environment"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// cpuPlugin is the path of the XLA plugin for CPUs; empty: there is none, or Default does not choose XLA.
func cpuPlugin(t *testing.T) string {
	t.Helper()
	cpu := computetest.CPU(t)
	if cpu == nil {
		return ""
	}
	_, argument, _ := strings.Cut(cpu.String(), ":")
	path, _, _ := strings.Cut(argument, ",")
	return path
}

// xlaPlugin is cpuPlugin; the test is skipped where there is none.
func xlaPlugin(t *testing.T) string {
	t.Helper()
	path := cpuPlugin(t)
	if path == "" {
		t.Skip("no XLA plugin for CPUs is installed")
	}
	return path
}

// needsXLA skips a test of messages that only a build with XLA in it has.
func needsXLA(t *testing.T) {
	t.Helper()
	if _, err := compute.Open("xla:/none.so"); errors.Is(err, compute.ErrUnknownBackend) {
		t.Skip("this build has no XLA")
	}
}

// nothingInstalled hides every plugin of this machine, and gives an empty cache folder.
func nothingInstalled(t *testing.T) (cache string) {
	t.Helper()
	cache = t.TempDir()
	t.Setenv("GOBNN_CACHE", cache)
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "PJRT_PLUGIN_LIBRARY_PATH"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("GOMLX_BACKEND", "")
	return cache
}

// write writes a file, in a folder that it makes.
func write(t *testing.T, path, text string) {
	t.Helper()
	computetest.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
}

// link is write of a symbolic link.
func link(t *testing.T, to, path string) {
	t.Helper()
	computetest.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(to, path)))
}

// onStderr is what a call writes to standard error.
func onStderr(t *testing.T, call func()) string {
	t.Helper()
	file := computetest.Must(os.Create(filepath.Join(t.TempDir(), "stderr")))
	stderr := os.Stderr
	os.Stderr = file
	call()
	os.Stderr = stderr
	computetest.NoError(t, file.Close())
	return string(computetest.Must(os.ReadFile(file.Name())))
}

func TestOpenErrors(t *testing.T) {
	needsXLA(t)
	text := filepath.Join(t.TempDir(), "x.so")
	write(t, text, strings.Repeat("no library, but long enough to be one\n", 100))
	nothingInstalled(t)
	for _, c := range []struct {
		config string
		want   error
		says   []string
	}{
		{"abacus", compute.ErrUnknownBackend, []string{`"abacus"`, "go", "xla"}},
		{"", compute.ErrUnknownBackend, []string{`""`}},
		{"xla:/no/such/plugin.so", compute.ErrNoPlugin, []string{"/no/such/plugin.so", "go run ./notebooks setup"}},
		{"xla:/no/such/plugin.so,option", compute.ErrNoPlugin, []string{"/no/such/plugin.so ("}},
		{"xla:/cpu.so,cpu_devices=0", nil, []string{`cpu_devices is "0"`, "from 1 on"}},
		{"xla:/cpu.so,cpu_devices=x", nil, []string{`cpu_devices is "x"`}},
		{"xla:/gpu.so,cpu_devices=2", nil, []string{"/gpu.so", "no plugin for CPUs"}},
		{"xla:nosuch", compute.ErrNoPlugin, []string{`"nosuch"`, "go run ./notebooks setup"}},
		{"xla", compute.ErrNoPlugin, []string{"go run ./notebooks setup"}},
		{"xla:" + text, compute.ErrPluginLoad, []string{text, "go run ./notebooks setup"}},
		{"hlo:/no/such/plugin.so", compute.ErrUnknownBackend, []string{`"hlo"`, "it must be xla or go"}},
		{"go:nosuch", nil, []string{`"go:ops_sequential,nosuch"`}},
	} {
		engine, err := compute.Open(c.config)
		if computetest.WantError(t, c.config, err, c.says...); engine != nil {
			t.Errorf("Open(%q) = %v", c.config, engine)
		}
		for _, kind := range []error{compute.ErrUnknownBackend, compute.ErrNoPlugin, compute.ErrPluginLoad} {
			if errors.Is(err, kind) != (kind == c.want) {
				t.Errorf("Open(%q): errors.Is(%v, %v) is %v", c.config, err, kind, kind != c.want)
			}
		}
	}
	for _, bad := range []string{"abacus", "xla:/no/such/plugin.so"} {
		t.Setenv("GOMLX_BACKEND", bad)
		_, err := compute.Default()
		computetest.WantError(t, bad, err, fmt.Sprintf("GOMLX_BACKEND=%q", bad))
	}
}

// An option that go-xla does not know, or cannot read, is no fault of the plugin's file.
func TestOptionErrors(t *testing.T) {
	plugin := xlaPlugin(t)
	for _, options := range []string{",nosuch=1", ",visible_devices=0,1", ",memory_fraction=half"} {
		config := "xla:" + plugin + options
		engine, err := compute.Open(config)
		if err == nil || errors.Is(err, compute.ErrPluginLoad) || !strings.Contains(err.Error(), `visible_devices=0;1"`) ||
			!strings.Contains(err.Error(), config) {
			t.Errorf("Open(%q) = %v, %v; want an error that says how options are written", config, engine, err)
		}
	}
}

// The Go backend without a word on its scheduler, which can deadlock by default, has none.
func TestOtherNames(t *testing.T) {
	for name, want := range map[string]string{"go": compute.GoBackend, "go:": compute.GoBackend,
		"go:parallelism=1": "go:ops_sequential,parallelism=1", "go:ops_parallel": "go:ops_parallel"} {
		if engine := computetest.Must(compute.Open(name)); engine.String() != want || engine.IsXLA() {
			t.Errorf("Open(%q) is %s, want %s", name, engine, want)
		}
	}
}

// A plugin that does not load is reported by the error, and by nothing on standard error.
func TestNothingIsLogged(t *testing.T) {
	needsXLA(t)
	path := filepath.Join(t.TempDir(), "none.so")
	write(t, path, "no library")
	var openErr error
	if said := onStderr(t, func() { _, openErr = compute.Open("xla:" + path) }); said != "" {
		t.Errorf("on standard error: %q", said)
	}
	if !errors.Is(openErr, compute.ErrPluginLoad) {
		t.Errorf("error %v", openErr)
	}
}

// Engines are shared by configuration; closing one frees it, twice does nothing, and the next Open gives another that
// works.
func TestSharedAndClosed(t *testing.T) {
	configs := []string{"go:ops_sequential,parallelism=1"}
	if plugin := cpuPlugin(t); plugin != "" {
		path := filepath.Join(t.TempDir(), "another.so")
		link(t, plugin, path)
		configs = append(configs, "xla:"+path)
	}
	for _, config := range configs {
		open := func() *compute.Engine { return computetest.Must(compute.Open(config)) }
		works := func(engine *compute.Engine) {
			exec := MustNewExec(engine.Backend(), func(x *Node) *Node { return MulScalar(x, 2) })
			defer exec.Finalize()
			out := computetest.Must(exec.Call(float32(3)))
			if got := out[0].Value(); got != float32(6) {
				t.Errorf("%s: 2*3 = %v", config, got)
			}
			out[0].FinalizeAll() //nolint:errcheck // before the engine is closed
		}
		a, b := open(), open()
		if a != b {
			t.Errorf("%s: two Opens gave two engines", config)
		}
		if a.String() != config {
			t.Errorf("String() = %q, want %q", a.String(), config)
		}
		works(a)
		a.Close()
		b.Close()
		c := open()
		if c == a {
			t.Errorf("%s: a closed engine was handed out again", config)
		}
		a.Close() // closed long ago: must not close c
		if open() != c {
			t.Errorf("%s: closing an old engine closed the new one", config)
		}
		works(c)
		c.Close()
	}
}

func TestNames(t *testing.T) {
	pure := computetest.Must(compute.Open(compute.GoBackend))
	if pure.Name() != "go" || pure.IsXLA() {
		t.Errorf("%s: Name() = %q, IsXLA() = %v", pure, pure.Name(), pure.IsXLA())
	}
	if or, err := pure.Or(); or != pure || err != nil {
		t.Errorf("Or() of an engine = %v, %v", or, err)
	}
	nothingInstalled(t)
	t.Setenv("GOMLX_BACKEND", compute.GoBackend)
	if or, err := (*compute.Engine)(nil).Or(); or != pure || err != nil {
		t.Errorf("Or() of nil = %v, %v, want what GOMLX_BACKEND says", or, err)
	}
}

// Default takes the best plugin of a whole environment, of PJRT_PLUGIN_LIBRARY_PATH and of the home folder, and the Go
// backend where there is none.
func TestDefault(t *testing.T) {
	plugin := cpuPlugin(t)
	cache := nothingInstalled(t)
	is := func(what, config string) {
		t.Helper()
		engine, err := compute.Default()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if engine.String() != config {
			t.Errorf("%s: Default opened %s, want %s", what, engine, config)
		}
	}
	is("nothing installed", compute.GoBackend)
	if plugin == "" {
		t.Skip("no XLA plugin is installed")
	}
	install := func(parts ...string) string {
		path := filepath.Join(parts...)
		link(t, plugin, path)
		t.Cleanup(func() {
			if engine, err := compute.Open("xla:" + path); err == nil {
				engine.Close()
			}
		})
		return path
	}
	home := install(os.Getenv("HOME"), ".local", "lib", "go-xla", "pjrt_c_api_cpu_plugin.so")
	is("a plugin of go-xla's installer", "xla:"+home)
	inPath := install(os.Getenv("PJRT_PLUGIN_LIBRARY_PATH"), "pjrt_c_api_cpu_plugin.so")
	is("PJRT_PLUGIN_LIBRARY_PATH", "xla:"+inPath)

	own := install(cache, "env", "lib", "python3.11", "site-packages", "xla_plugins", "xla_cpu_pjrt", "xla_cpu_pjrt.so")
	is("an environment that is not whole", "xla:"+inPath)
	write(t, filepath.Join(cache, "env", environment.Stamp), "")
	is("a whole environment", "xla:"+own)
	tpu := t.TempDir()
	for file, text := range map[string]string{"vendor": "0x1ae0\n", "device": "0x0063\n"} {
		write(t, filepath.Join(tpu, "sys/bus/pci/devices/0000:00:05.0", file), text)
	}
	t.Cleanup(compute.SetMachine(accelerator.Machine{Root: tpu}))
	onTPU := install(os.Getenv("PJRT_PLUGIN_LIBRARY_PATH"), "pjrt_c_api_tpu_plugin.so") // by its name only
	is("an accelerator", "xla:"+onTPU)

	write(t, filepath.Join(cache, "env/lib/python3.11/site-packages/libtpu/libtpu.so"), "no library")
	is("the first plugin does not load", "xla:"+onTPU)
}

func TestTry(t *testing.T) {
	if err := compute.Try(func() {}); err != nil {
		t.Error(err)
	}
	cause := errors.New("a cause")
	if err := compute.Try(func() { panic(cause) }); !errors.Is(err, cause) || errors.Is(err, compute.ErrOutOfMemory) {
		t.Errorf("panic(error): %v", err)
	}
	if err := compute.Try(func() { panic("a text") }); err == nil || err.Error() != "a text" {
		t.Errorf("panic(string): %v", err)
	}
	for _, text := range []string{"RESOURCE_EXHAUSTED: Out of memory",
		"PJRT error: Out of memory allocating 274877906944 bytes.", "CUDA_ERROR: out of memory"} {
		if err := compute.Try(func() { panic(errors.New(text)) }); !errors.Is(err, compute.ErrOutOfMemory) ||
			!strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "fewer particles") {
			t.Errorf("panic(%q): %v", text, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a fault of the program was swallowed")
		}
	}()
	compute.Try(func() { _ = []int{}[len(text)] }) //nolint:errcheck // it panics
}

const text = "one"

// More memory than any machine has: XLA says so, and the next step runs.
func TestOutOfMemory(t *testing.T) {
	plugin := xlaPlugin(t)
	engine := computetest.Must(compute.Open("xla:" + plugin))
	program, state := newProgram(t, engine, nil, []string{"x"},
		func(_ compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
			x := Mul(Iota(inputs[0].Graph(), shapes.Make(compute.Float32, 1<<44), 0), inputs[0])
			return compute.Nodes{"x": x}, inputs[0]
		}, nil)
	if _, err := program.Run(state, float32(1)); !errors.Is(err, compute.ErrOutOfMemory) ||
		!strings.Contains(err.Error(), t.Name()) {
		t.Errorf("64 TiB: error %v", err)
	}
	if got := computetest.Run(t, engine, func(_ *Graph, a []*Node) []*Node { return []*Node{OnePlus(a[0])} },
		float32(1)); got[0][0] != 2 {
		t.Errorf("after that 1 + 1 = %v", got)
	}
}

// A CPU is one device, or as many as the configuration says.
func TestCPUDevices(t *testing.T) {
	xlaPlugin(t)
	one := computetest.CPU(t)
	if one.Devices() != 1 || !one.OnCPU() {
		t.Errorf("the engine %s has %d devices", one, one.Devices())
	}
	if four, err := compute.Open(one.String() + ",cpu_devices=4"); err != nil || four.Devices() != 4 ||
		four.Backend() == one.Backend() {
		t.Errorf("the engine %v has not 4 devices of its own, %v", four, err)
	}
}

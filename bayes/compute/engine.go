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

	backends "github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend" // registers "go"
)

// DType is the floating-point type that a run computes in.
type DType = dtypes.DType

// The two types that the library computes in.
const (
	Float32 = dtypes.Float32
	Float64 = dtypes.Float64
)

// GoBackend is the configuration of GoMLX's pure-Go backend: with sequential operations, since its parallel scheduler
// can deadlock.
const GoBackend = "go:ops_sequential"

var (
	errNoPlugin       = errors.New("XLA plugin not found")
	errOutOfMemory    = errors.New("out of memory")
	errUnknownBackend = errors.New("unknown backend")
	errPluginLoad     = errors.New("XLA plugin does not load")
)

// setupCommand installs XLA; it stands in every message about a missing plugin.
const setupCommand = "go run ./notebooks setup"

// Engine is an open backend: XLA through a PJRT plugin, or GoMLX's own Go backend. Engines are shared: opening the same
// configuration returns the same one. Safe for use by several goroutines.
type Engine struct {
	backend  backends.Backend
	config   string
	gpus     []accelerator.GPU // that it computes on
	together sync.Mutex        // held while several devices run a program
	kept     keptValues        // between runs, see Keep
}

var (
	enginesMu sync.Mutex
	engines   = map[string]*Engine{} // by configuration
	noticeOne sync.Once
)

// Default opens the backend that the policy chooses and shares it:
//
//  1. $GOMLX_BACKEND, where it is set: exactly that, or an error that names it;
//  2. else the best installed XLA plugin that works here, accelerators before CPU, in the project's own folders
//     (environment.Dir, environment.Extra), in $PJRT_PLUGIN_LIBRARY_PATH and in ~/.local/lib/go-xla;
//  3. else GoMLX's Go backend, with one line on standard error that names the command that installs XLA.
//
// If a plugin is skipped, such as the plugin for CUDA on a machine without a GPU, a line on standard error says so.
//
// Nothing is downloaded.
func Default() (*Engine, error) {
	if config, set := os.LookupEnv("GOMLX_BACKEND"); set && config != "" {
		engine, err := Open(config)
		if err != nil {
			return nil, fmt.Errorf("GOMLX_BACKEND=%q (unset it to let the library choose): %w", config, err)
		}
		return engine, nil
	}
	var failures []error
	notice := func(on string) {
		noticeOne.Do(func() {
			for _, err := range failures {
				fmt.Fprintf(os.Stderr, "gobnn: %v\n", err)
			}
			fmt.Fprintf(os.Stderr, "gobnn: computing on %s\n", on)
		})
	}
	for _, plugin := range installedPlugins() {
		engine, err := Open("xla:" + plugin)
		if err == nil {
			if len(failures) > 0 {
				notice(engine.Device())
			}
			return engine, nil
		}
		failures = append(failures, err)
	}
	notice("the slow Go backend: " + goBackendReason(len(failures)))
	return Open(GoBackend)
}

// goBackendReason says why Default opens the Go backend, and how to mend it, unless an error of a plugin has said so.
func goBackendReason(failed int) string {
	switch {
	case !known("xla"):
		return withoutXLA
	case failed > 0:
		return "no XLA plugin that is installed works here"
	}
	return fmt.Sprintf("no XLA plugin was found; `%s` installs one", setupCommand)
}

// devicesOption is the option of a configuration for the number of devices of a CPU.
const devicesOption = "cpu_devices"

// Open opens a backend by GoMLX's configuration string, such as "xla:/path/to/plugin.so" or GoBackend; "xla:cuda",
// "xla:tpu" and "xla:cpu" are the installed plugin of that kind. A configuration that is open already is shared. The
// errors name the cure.
//
// Options follow a comma. "xla:cuda,visible_devices=1" takes the second GPU that nvidia-smi lists,
// "visible_devices=0;1" the first two; CUDA_VISIBLE_DEVICES works too. XLA takes at most three quarters of a GPU's
// memory: "memory_fraction=.9" lets it take more. Matrix products of float32 are computed in full float32 on a GPU:
// "tf32=true" makes them faster and less precise. A CPU is one device, which uses all processors: "cpu_devices=4" makes
// it four, to test programs for several, and hardly faster.
func Open(config string) (*Engine, error) {
	name, argument, _ := strings.Cut(config, ":")
	if !known(name) {
		err := fmt.Errorf("%w %q: it must be xla or go", errUnknownBackend, name)
		if name == "xla" {
			err = fmt.Errorf("%w: %s", err, withoutXLA)
		}
		return nil, err
	}
	devices := 0
	switch {
	case name == "go" && !strings.Contains(argument, "ops_"): // unless ops_parallel asks for its scheduler
		config = strings.TrimSuffix(GoBackend+","+argument, ",")
	case name == "xla":
		resolved, err := resolve(argument)
		if err != nil {
			return nil, err
		}
		if resolved != argument {
			config, argument = name+":"+resolved, resolved
		}
		if argument, devices, err = cutDevices(argument); err != nil {
			return nil, fmt.Errorf("backend %q: %w", config, err)
		}
	}

	enginesMu.Lock()
	defer enginesMu.Unlock()
	if engine, ok := engines[config]; ok {
		return engine, nil
	}
	var gpus []accelerator.GPU
	if name == "xla" {
		if path, _, _ := strings.Cut(argument, ","); filepath.IsAbs(path) {
			_, err := os.Stat(path)
			if err != nil {
				return nil, fmt.Errorf("%w at %s (`%s` installs it): %w", errNoPlugin, path, setupCommand, err)
			}
			if gpus, err = checkAccelerator(argument); err != nil {
				return nil, err
			}
		}
		if os.Getenv("GOBNN_MALLOC") != "system" {
			keepFreedMemory()
		}
	}
	backend, err := newBackend(config, argument, devices)
	if err != nil {
		text := err.Error()
		if strings.Contains(text, "unknown plugin options") || strings.Contains(text, "Failed to parse option") {
			return nil, fmt.Errorf("backend %q: options are separated by commas, and the numbers of GPUs by semicolons, as in "+
				"\"xla:cuda,visible_devices=0;1\": %w", config, err)
		}
		missing := strings.Contains(text, "no plugins found") || strings.Contains(text, "not found: available plugins")
		if name == "xla" && missing {
			return nil, fmt.Errorf("%w by the name %q (`%s` installs one): %w", errNoPlugin, argument, setupCommand, err)
		}
		if name == "xla" {
			return nil, fmt.Errorf("%w: %q for %s/%s (is the file whole, and built for this machine? `%s` installs a tested "+
				"one): %w",
				errPluginLoad, argument, runtime.GOOS, runtime.GOARCH, setupCommand, err)
		}
		return nil, fmt.Errorf("backend %q: %w", config, err)
	}
	engine := &Engine{backend: backend, config: config, gpus: gpus}
	engines[config] = engine
	return engine, nil
}

// engineOf is the engine of a backend, which is all that a graph knows; nil if it was not opened here.
func engineOf(backend backends.Backend) *Engine {
	enginesMu.Lock()
	defer enginesMu.Unlock()
	for _, engine := range engines {
		if engine.backend == backend {
			return engine
		}
	}
	return nil
}

// newBackend opens a backend; NewWithConfig panics on some faults, which here are errors like the others.
func newBackend(config, argument string, devices int) (backend backends.Backend, err error) {
	err = Try(func() {
		var openErr error
		if strings.HasPrefix(config, "xla") {
			withoutSignals(func() { backend, openErr = openXLA(argument, devices) })
		} else {
			backend, openErr = backends.NewWithConfig(config)
		}
		if openErr != nil {
			panic(openErr)
		}
	})
	return backend, err
}

// cutDevices removes devicesOption from the part of a configuration after "xla:"; devices is 0 if it has none.
func cutDevices(argument string) (rest string, devices int, err error) {
	var kept []string
	for part := range strings.SplitSeq(argument, ",") {
		value, ours := strings.CutPrefix(part, devicesOption+"=")
		if !ours {
			kept = append(kept, part)
			continue
		}
		if devices, err = strconv.Atoi(value); err != nil || devices < 1 {
			return "", 0, fmt.Errorf("%s is %q: it must be a whole number from 1 on", devicesOption, value)
		}
	}
	if rest = strings.Join(kept, ","); devices > 0 && !isCPU(rest) {
		return "", 0, fmt.Errorf("%s says how many devices a CPU is to be, but %q is no plugin for CPUs", devicesOption, rest)
	}
	return rest, devices, nil
}

// isCPU says by its name whether a plugin computes on the CPU.
func isCPU(argument string) bool {
	path, _, _ := strings.Cut(argument, ",")
	return strings.Contains(strings.ToLower(filepath.Base(path)), "cpu")
}

// known says whether this build has a backend. Those that go-xla registers under other names, which would be opened
// unchecked, are none.
func known(name string) bool {
	return (name == "xla" || name == "go") && slices.Contains(backends.List(), name)
}

// Backend is the GoMLX backend, to build and run graphs directly.
func (e *Engine) Backend() backends.Backend { return e.backend }

// String is the configuration that the engine was opened with.
func (e *Engine) String() string { return e.config }

// Name is "xla" or "go", with the plugin's file name for XLA: what a posterior's provenance records.
func (e *Engine) Name() string {
	name, argument, _ := strings.Cut(e.config, ":")
	if name == "xla" {
		return name + ":" + filepath.Base(argument)
	}
	return name
}

// OnCPU says whether the engine computes on the machine's processors, not on an accelerator.
func (e *Engine) OnCPU() bool {
	_, argument, _ := strings.Cut(e.config, ":")
	return !e.IsXLA() || isCPU(argument)
}

// IsXLA says whether the engine compiles with XLA.
func (e *Engine) IsXLA() bool { return strings.HasPrefix(e.config, "xla") }

// Threads is the number of threads with which XLA computes on a CPU: $NPROC if that is set, and else the number of
// processors that the process may use.
func Threads() int {
	if n, err := strconv.Atoi(os.Getenv("NPROC")); err == nil { // as XLA reads it
		return max(n, 1)
	}
	return runtime.NumCPU()
}

// Threads is the number of threads by which XLA on a CPU divides sums, and so decides their last digits; 0 for an
// engine whose bits do not depend on it.
func (e *Engine) Threads() int {
	if e.IsXLA() && e.OnCPU() {
		return Threads()
	}
	return 0
}

// Or returns e, or the Default engine if e is nil, for settings whose zero value is the default engine.
func (e *Engine) Or() (*Engine, error) {
	if e != nil {
		return e, nil
	}
	return Default()
}

// Try runs fn, which builds or runs graphs, and returns what it panics with as an error. If the backend is out of
// memory the error gives advice.
func Try(fn func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case runtime.Error:
			panic(p) // a fault of the program, not of its input
		case error:
			err = explain(p)
		default:
			err = fmt.Errorf("%v", p)
		}
	}()
	fn()
	return nil
}

// explain recognises a backend's message that it is out of memory, and adds advice.
func explain(err error) error {
	if errors.Is(err, errOutOfMemory) {
		return err // found before the backend was asked
	}
	text := err.Error()
	for _, sign := range []string{"RESOURCE_EXHAUSTED", "Out of memory", "out of memory", "OOM"} {
		if strings.Contains(text, sign) {
			return fmt.Errorf("%w: use fewer particles, a smaller batch or a smaller Chunk: %w", errOutOfMemory, err)
		}
	}
	return err
}

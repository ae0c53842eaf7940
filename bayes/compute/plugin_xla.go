//go:build cgo && !noxla && ((linux && (amd64 || arm64)) || (darwin && arm64))

package compute

import (
	"bytes"
	"cmp"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gobnn/bayes/compute/accelerator"
	"gobnn/bayes/compute/environment"
	"gobnn/bayes/internal/plugin"

	backends "github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla" // without its auto-installer: opening a backend downloads nothing
	"github.com/gomlx/go-xla/pjrt"
	"golang.org/x/sys/cpu"
	"k8s.io/klog/v2"
)

// withoutXLA is empty in a build with XLA.
const withoutXLA = ""

// openXLA opens a plugin by what follows "xla:" in a configuration, less its devices. A CPU is one device unless
// devices says otherwise; XLA's own default is four, whose threads would compete for few processors. go-xla also logs
// its errors on standard error: for a plugin that does not open the log is dropped.
func openXLA(argument string, devices int) (backend backends.Backend, err error) {
	var logged bytes.Buffer
	before := klog.CaptureState()
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(&logged, nil)))
	defer func() {
		before.Restore()
		if err == nil {
			os.Stderr.Write(logged.Bytes()) //nolint:errcheck // nowhere else to say it
		}
	}()
	options := pjrt.NamedValuesMap{}
	if isCPU(argument) {
		options["cpu_device_count"] = int64(max(1, devices))
		fullVectors(cpu.X86.HasAVX512F)
		prepareCPU(argument)
	}
	if path, _, _ := strings.Cut(argument, ","); accelerator.IsCUDA(path) {
		_ = plugin.Async(path) // if it cannot, the host waits in three places where one would do
		argument = prepareCUDA(argument)
	}
	return xla.NewWithOptions(argument, options)
}

// executablesLimit bounds the folder of compiled programs. One of them takes 100 kB to a few MB.
const executablesLimit = 512 << 20

// prepareCPU has a CPU's plugin compile small programs for one processor, and keep what it compiles in
// $GOBNN_EXECUTABLES, by default the folder "executables" in CacheDir, unless that is "off". If it cannot, programs are
// compiled at each start. Those of accelerators are not kept, since they depend on more than the key has.
func prepareCPU(argument string) {
	path, _, _ := strings.Cut(argument, ",")
	if !filepath.IsAbs(path) {
		return
	}
	folder := os.Getenv("GOBNN_EXECUTABLES")
	if folder == "" {
		cache, err := CacheDir()
		if err != nil {
			folder = "off"
		}
		folder = cmp.Or(folder, filepath.Join(cache, "executables"))
	}
	var store *plugin.Store
	if folder != "off" {
		store = &plugin.Store{Folder: folder, Limit: executablesLimit}
	}
	_ = plugin.OnHost(path, store) // if it cannot, programs are as they would be
}

// installedPlugins lists the PJRT plugins to try, as absolute paths, accelerators first, then by folder.
func installedPlugins() []string {
	var found []string
	add := func(pattern ...string) {
		matches, _ := filepath.Glob(filepath.Join(pattern...)) // the patterns are constants: no error
		slices.Sort(matches)
		for _, m := range matches {
			if abs, err := filepath.Abs(m); err == nil && !slices.Contains(found, abs) {
				found = append(found, abs)
			}
		}
	}
	if env, err := environment.Dir(); err == nil {
		if _, err := os.Stat(filepath.Join(env, environment.Stamp)); err == nil {
			add(env, "plugin", "*.so")
			add(env, "plugin", "*.dylib")
			packages := filepath.Join(env, "lib", "python3*", "site-packages")
			add(packages, "jax_plugins", "xla_cuda*", "xla_cuda_plugin.so")
			add(packages, "libtpu", "libtpu.so")
			add(packages, "xla_plugins", "xla_cpu_pjrt", "xla_cpu_pjrt.so")
		}
	}
	for _, a := range []struct{ kind, pattern string }{
		{"cuda", filepath.Join("jax_plugins", "xla_cuda*", "xla_cuda_plugin.so")},
		{"tpu", filepath.Join("libtpu", "libtpu.so")},
	} {
		if dir, err := environment.Extra(a.kind); err == nil {
			if _, err := os.Stat(filepath.Join(dir, environment.Stamp)); err == nil {
				add(dir, a.pattern)
			}
		}
	}
	folders := filepath.SplitList(os.Getenv("PJRT_PLUGIN_LIBRARY_PATH"))
	if home, err := os.UserHomeDir(); err == nil {
		folders = append(folders, filepath.Join(home, ".local", "lib", "go-xla"),
			filepath.Join(home, "Library", "Application Support", "go-xla"))
	}
	for _, folder := range folders {
		for _, name := range []string{"pjrt_c_api_*_plugin.so", "pjrt_plugin_*.so", "pjrt-plugin-*.so",
			"pjrt_c_api_*_plugin.dylib", "pjrt_plugin_*.dylib"} {
			add(folder, name)
		}
	}
	onCPU := func(path string) int {
		if isCPU(path) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(found, func(a, b string) int { return onCPU(a) - onCPU(b) })
	return found
}

package compute_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	"golang.org/x/sys/unix"
)

// With too few addresses left for the plugin the limit is named, not the plugin's file blamed, and the Go backend is
// not taken for want of a plugin.
func TestAddressLimit(t *testing.T) {
	if os.Getenv("GOBNN_TEST_ADDRESSES") != "" {
		fewAddresses(t)
		if _, err := compute.Default(); err != nil {
			t.Fatal(err)
		}
		return
	}
	needsXLA(t)
	plugins := compute.InstalledPlugins() // not opened here: go-xla would know it in the tests after this one
	if len(plugins) == 0 {
		t.Skip("no XLA plugin is installed")
	}
	plugin := plugins[len(plugins)-1] // those for CPUs come last
	nothingInstalled(t)
	link := filepath.Join(os.Getenv("PJRT_PLUGIN_LIBRARY_PATH"), "pjrt_c_api_cpu_plugin.so")
	computetest.NoError(t, os.Symlink(plugin, link))
	program := exec.Command(os.Args[0], "-test.run=^TestAddressLimit$")
	program.Env = append(os.Environ(), "GOBNN_TEST_ADDRESSES=yes")
	said, err := program.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, s := range []string{compute.ErrPluginLoad.Error(), link, "`ulimit -v unlimited`", "slow Go backend"} {
		if !strings.Contains(string(said), s) {
			t.Errorf("it does not say %q: %s", s, said)
		}
	}
	for _, s := range []string{"is the file whole", "no XLA plugin was found"} {
		if strings.Contains(string(said), s) {
			t.Errorf("it says %q: %s", s, said)
		}
	}
}

// fewAddresses leaves this process 150 MB of addresses: the plugin for CPUs takes more.
func fewAddresses(t *testing.T) {
	t.Helper()
	text := computetest.Must(os.ReadFile("/proc/self/statm"))
	var pages uint64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		t.Fatal(err)
	}
	limit := pages*uint64(os.Getpagesize()) + 150<<20
	computetest.NoError(t, unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: limit}))
}

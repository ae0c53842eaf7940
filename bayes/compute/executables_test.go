package compute_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/internal/plugin"

	. "github.com/gomlx/gomlx/core/graph"
)

// runKept is what TestExecutables runs in processes of its own: steps of a walk with a sort, a product and a reduction,
// on one device and on four of the plugin that $GOBNN_TEST_EXECUTABLES names. It prints the numbers to the bit, and how
// many programs were loaded and compiled.
func runKept(t *testing.T) {
	for _, devices := range []int{1, 4} {
		engine := computetest.Must(compute.Open("xla:" + os.Getenv("GOBNN_TEST_EXECUTABLES") + ",cpu_devices=4"))
		program := computetest.Must(compute.NewProgram(engine, "kept", []string{"x"}, []string{"x"},
			func(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
				x := Add(s["x"], Sin(Einsum("ab,cb->ac", s["x"], s["x"])))
				return compute.Nodes{"x": Sort(x, 0, true)}, ReduceSum(Mul(x, inputs[0]), 0)
			}))
		defer program.Close()
		state, err := compute.NewShardedState(engine, compute.Sharding{Devices: devices, Particles: []string{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		defer state.Close()
		start := make([]float64, 64)
		for i := range start {
			start[i] = float64(i*i%11) / 7
		}
		state.Set("x", compute.Floats(compute.Float64, start, 8, 8))
		for range 3 {
			record := computetest.Must(program.Run(state, .5))
			fmt.Printf("%x\n", record)
		}
	}
	loaded, compiled := plugin.Counts()
	fmt.Printf("loaded %d, compiled %d\n", loaded, compiled)
}

// What was compiled once is loaded by later processes and gives the same bits; what was altered, cut off, forged or
// lies in a folder of others is compiled anew.
func TestExecutables(t *testing.T) {
	if os.Getenv("GOBNN_TEST_EXECUTABLES") != "" {
		runKept(t)
		return
	}
	plugin := xlaPlugin(t)
	if runtime.GOOS != "linux" {
		t.Skip("executables are kept on Linux")
	}
	folder := filepath.Join(t.TempDir(), "executables")
	run := func(what, folder, counts string, more ...string) []byte {
		t.Helper()
		command := exec.Command(os.Args[0], "-test.run=^TestExecutables$")
		command.Env = append(append(os.Environ(), "GOBNN_TEST_EXECUTABLES="+plugin, "GOBNN_EXECUTABLES="+folder), more...)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", what, err, out)
		}
		numbers, rest, _ := bytes.Cut(out, []byte("loaded"))
		if got, _, _ := bytes.Cut(rest, []byte("\n")); string(got) != counts {
			t.Errorf("%s: loaded%s, want%s", what, got, counts)
		}
		return numbers
	}
	files := func(pattern string, want int) []string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil || len(names) != want {
			t.Fatalf("files %q, %v", names, err)
		}
		return names
	}
	want := run("at first", folder, " 0, compiled 2")
	same := func(what string, got []byte) {
		t.Helper()
		if !bytes.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
		}
	}
	same("kept", run("kept", folder, " 2, compiled 0"))
	same("off", run("off", "off", " 0, compiled 2"))
	same("other flags", run("other flags", folder, " 0, compiled 2", "XLA_FLAGS=--xla_cpu_enable_fast_math=false"))
	for _, name := range files("*", 4) { // those of two runs
		computetest.NoError(t, os.Remove(name))
	}
	run("again", folder, " 0, compiled 2")
	for what, damage := range map[string]func(whole []byte) []byte{
		"altered": func(whole []byte) []byte { whole[len(whole)/2] ^= 1; return whole },
		"cut off": func(whole []byte) []byte { return whole[:len(whole)/2] },
		"forged": func(whole []byte) []byte { // a right digest over what is no executable
			head := bytes.IndexByte(whole, '\n') + 1
			junk := bytes.Repeat([]byte("junk"), 1000)
			sum := sha256.Sum256(junk)
			return append(append(whole[:head:head], sum[:]...), junk...)
		},
	} {
		for _, name := range files("*.xla", 2) {
			whole := computetest.Must(os.ReadFile(name))
			computetest.NoError(t, os.WriteFile(name, damage(whole), 0o600))
		}
		same(what, run(what, folder, " 0, compiled 2"))
		same("after "+what, run("after "+what, folder, " 2, compiled 0"))
	}
	computetest.NoError(t, os.Chmod(folder, 0o777))
	same("a folder of others", run("a folder of others", folder, " 0, compiled 2"))
}

// Package computetest runs a test on every backend and in every type that the library computes in.
//
// go test ./... is to take at most 4 minutes on two cores. What takes longer, and finds little that the tests beside it
// do not find, is in files long_test.go, built with the tag long, in tests whose names end in Long:
//
//	go test -tags long -run 'Long$' -timeout 60m ./...
//
// makes these runs, and so does CI.
//
// On a GPU the tests run with GOBNN_TEST_ONE_ENGINE=1, which leaves out the Go backend where a test is of every engine.
package computetest

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/internal/stats"

	"github.com/gomlx/gomlx/core/graph"
)

// oneVariable, where it is set, leaves out the Go backend where tests run on every engine: for the suite on a GPU, on
// whose host those tests would take longer than the GPU's.
const oneVariable = "GOBNN_TEST_ONE_ENGINE"

// Engines returns the engine that compute.Default opens and, where that is another, the Go backend, unless
// GOBNN_TEST_ONE_ENGINE is set.
func Engines(t testing.TB) []*compute.Engine {
	t.Helper()
	chosen, err := compute.Default()
	if err != nil {
		t.Fatal(err)
	}
	pure := Go(t)
	if chosen == pure || os.Getenv(oneVariable) != "" {
		return []*compute.Engine{chosen}
	}
	return []*compute.Engine{chosen, pure}
}

// XLA returns the engine that compute.Default opens if it is XLA, and otherwise skips the test: for what the Go backend
// does not do, or not in a test's time.
func XLA(t testing.TB, why string) *compute.Engine {
	t.Helper()
	engine := Engines(t)[0]
	if !engine.IsXLA() {
		t.Skip("needs XLA: " + why)
	}
	return engine
}

// Go returns the Go backend, which compiles nothing: for tests of what no engine can change.
func Go(t testing.TB) *compute.Engine {
	t.Helper()
	pure, err := compute.Open(compute.GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	return pure
}

// Each runs a test as a subtest on every engine in float32 and float64.
func Each(t *testing.T, test func(t *testing.T, engine *compute.Engine, dtype compute.DType)) {
	t.Helper()
	for _, engine := range Engines(t) {
		for _, dtype := range []compute.DType{compute.Float32, compute.Float64} {
			t.Run(engine.Name()+"/"+dtype.String(), func(t *testing.T) { test(t, engine, dtype) })
		}
	}
}

// Pair runs a test as a subtest with each engine and each type once, not with all four pairs of them: for tests that
// compile long. Where there is one engine only, it runs both types.
func Pair(t *testing.T, test func(t *testing.T, engine *compute.Engine, dtype compute.DType)) {
	t.Helper()
	engines := Engines(t)
	for i, dtype := range []compute.DType{compute.Float32, compute.Float64} {
		engine := engines[i%len(engines)]
		t.Run(engine.Name()+"/"+dtype.String(), func(t *testing.T) { test(t, engine, dtype) })
	}
}

// Bench runs a benchmark on the engine that compute.Default opens, as a sub-benchmark whose name says which that is,
// such as "backend=xla_cpu_pjrt": figures of two backends are then not mistaken for one another.
func Bench(b *testing.B, benchmark func(b *testing.B, engine *compute.Engine)) {
	b.Helper()
	BenchOn(b, Engines(b)[0], benchmark)
}

// BenchOn is Bench on a given engine.
func BenchOn(b *testing.B, engine *compute.Engine, benchmark func(b *testing.B, engine *compute.Engine)) {
	b.Helper()
	b.Run("backend="+label(engine), func(b *testing.B) { benchmark(b, engine) })
}

// Cases returns the cases of a benchmark: all of them, or with -short, by which CI runs every benchmark once, the
// first.
func Cases[T any](cases ...T) []T {
	if testing.Short() {
		return cases[:1]
	}
	return cases
}

// label is an engine's name without what a benchmark's name cannot hold or need not.
func label(engine *compute.Engine) string {
	name := strings.TrimPrefix(engine.Name(), "xla:")
	name, options, _ := strings.Cut(name, ",")
	name = strings.TrimSuffix(name, filepath.Ext(name))
	if options != "" {
		name += "," + options
	}
	return name
}

// Compile prepares a graph and returns a function that runs it: arguments are Go values or tensors, results are flat
// float64s, one slice for each output. It is compiled at the first call.
func Compile(
	t testing.TB, engine *compute.Engine, fn func(g *graph.Graph, args []*graph.Node) []*graph.Node,
) func(args ...any) [][]float64 {
	t.Helper()
	exec, err := graph.NewExec(engine.Backend(), func(args []*graph.Node) []*graph.Node {
		outputs := fn(args[0].Graph(), args[:len(args)-1])
		for i, o := range outputs {
			outputs[i] = graph.ConvertDType(o, compute.Float64)
		}
		return outputs
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(exec.Finalize)
	return func(args ...any) [][]float64 {
		t.Helper()
		results, err := exec.Call(append(args, float32(0))...) // a graph needs an input
		if err != nil {
			t.Fatal(err)
		}
		var flat [][]float64
		for _, r := range results {
			values, err := compute.Float64s(r)
			if err != nil {
				t.Fatal(err)
			}
			flat = append(flat, values)
		}
		return flat
	}
}

// Run compiles a graph and runs it once.
func Run(
	t testing.TB, engine *compute.Engine, fn func(g *graph.Graph, args []*graph.Node) []*graph.Node, args ...any,
) [][]float64 {
	t.Helper()
	return Compile(t, engine, fn)(args...)
}

// Near fails the test where got and want differ by more than tolerance (1 + |want|) anywhere.
func Near(t testing.TB, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d numbers, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tolerance*(1+math.Abs(want[i]))) && got[i] != want[i] {
			t.Errorf("%s[%d] = %v, want %v within %g", what, i, got[i], want[i], tolerance)
			return
		}
	}
}

// WantError fails the test unless there is an error that has all of these words.
func WantError(t testing.TB, what string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: the error %q lacks %q", what, err, w)
		}
	}
}

// Must is the value of a call that cannot fail in a test; it panics with the error if it does.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// NoError ends the test with an error, if there is one.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Kolmogorov is the asymptotic p-value of the one-sample Kolmogorov-Smirnov statistic.
func Kolmogorov(draws []float64, cdf func(float64) float64) float64 {
	return stats.KolmogorovP(stats.Kolmogorov(draws, cdf), float64(len(draws)))
}

// CPU is XLA on the processors: Default's engine, or where that computes on an accelerator the installed plugin for
// CPUs. It is nil where there is none, or where Default does not choose XLA.
func CPU(t testing.TB) *compute.Engine {
	t.Helper()
	engine := Engines(t)[0]
	if !engine.OnCPU() {
		var err error
		if engine, err = compute.Open("xla:cpu"); err != nil {
			t.Log(err)
			return nil
		}
	}
	if !engine.IsXLA() {
		return nil
	}
	return engine
}

// Several is an engine of at least four devices; see Devices.
func Several(t testing.TB) *compute.Engine {
	t.Helper()
	return Devices(t, 4)
}

// Devices returns the default engine if it has at least count devices, else the CPU as count devices. If there is
// neither, the test is skipped.
func Devices(t testing.TB, count int) *compute.Engine {
	t.Helper()
	engine := Engines(t)[0]
	if engine.Devices() >= count {
		return engine
	}
	cpu := CPU(t)
	if cpu == nil {
		t.Skipf("the engine %s has %d devices, and there is no XLA plugin for CPUs to be the %d that are needed", engine,
			engine.Devices(), count)
	}
	engine, err := compute.Open(fmt.Sprintf("%s,cpu_devices=%d", cpu, count))
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

//go:build long

package check

import (
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
)

// TestKernelsLong is TestKernels with the types exchanged: XLA in float64 and the Go backend in float32.
func TestKernelsLong(t *testing.T) {
	t.Parallel()
	computetest.Each(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		if engine.IsXLA() == (dtype == compute.Float32) {
			t.Skip("TestKernels has it")
		}
		passKernels(t, engine, dtype)
	})
}

// An evidence that is a factor of 1.4 wrong is found by about 95 calls of 100, however few Runs the call begins with:
// 60 runs of 200 particles find it by 10 calls of 20, if too large, and the runs that are added, 45 of them, by 19.
func TestSequentialPowerLong(t *testing.T) {
	t.Parallel()
	found, runs := 0, 0
	for call := range uint64(10) {
		sampler := filter{Line(), 200, "evidence a factor of 1.4 too large"}
		report, err := runSequential(func(seed uint64) (SequentialRun, error) {
			runs++
			return sampler.run(seed)
		}, SequentialOptions{Runs: 60, seed: 1 + 1000*call})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(report.Failures(), func(f Test) bool { return f.Target == "evidence" }) {
			found++
		}
	}
	t.Logf("found by %d calls of 10, of %d runs together", found, runs)
	if found < 8 || runs > 1500 {
		t.Errorf("found by %d calls of 10, of %d runs together", found, runs)
	}
}

//go:build long

package check

import (
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

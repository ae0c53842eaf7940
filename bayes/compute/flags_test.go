package compute_test

import (
	"os"
	"testing"

	"gobnn/bayes/compute"
)

// Vectors of 512 bits are asked for where the processor has them and the user has not chosen.
func TestFullVectors(t *testing.T) {
	const full = "--xla_cpu_prefer_vector_width=512"
	for _, c := range []struct {
		has         bool
		flags, want string
	}{
		{false, "", ""},
		{true, "", full},
		{true, full, full},
		{true, "--xla_cpu_enable_fast_math=false", "--xla_cpu_enable_fast_math=false " + full},
		{true, "--xla_cpu_prefer_vector_width=128", "--xla_cpu_prefer_vector_width=128"},
		{true, "--xla_cpu_max_isa=AVX2", "--xla_cpu_max_isa=AVX2"},
	} {
		t.Setenv("XLA_FLAGS", c.flags)
		compute.FullVectors(c.has)
		if got := os.Getenv("XLA_FLAGS"); got != c.want {
			t.Errorf("XLA_FLAGS=%q becomes %q, want %q", c.flags, got, c.want)
		}
	}
}

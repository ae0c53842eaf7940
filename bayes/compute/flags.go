package compute

import (
	"os"
	"strings"
)

// fullVectors lets XLA use vectors of 512 bits on a CPU that has them. XLA's own choice is 256, with which a step of
// OHSMC with 10 000 particles takes 9 % longer on an Intel Sapphire Rapids, and 300 000 normals 18 %. Flags of the
// user's own on the width or the instruction set stay as they are.
func fullVectors(has bool) {
	if has {
		addXLAFlag("--xla_cpu_prefer_vector_width", "512", "--xla_cpu_max_isa")
	}
}

// addXLAFlag adds a flag to XLA_FLAGS, which a plugin reads when it compiles its first program, unless one of the same
// name, or one of the others, is there already.
func addXLAFlag(name, value string, others ...string) {
	flags := os.Getenv("XLA_FLAGS")
	for _, set := range append(others, name) {
		if strings.Contains(flags, set) {
			return
		}
	}
	setEnvironment("XLA_FLAGS", strings.TrimSpace(flags+" "+name+"="+value))
}

// setEnvironment sets a variable of the environment: a good name and a value without NUL, of which the system refuses
// none.
func setEnvironment(name, value string) { _ = os.Setenv(name, value) }

//go:build !long && !digests

package computetest

import (
	"os"
	"slices"
	"strings"
)

// Most of a test's time is XLA's compiling, of which LLVM's higher levels of optimisation take more than half; what
// they save in a test is less. Tests are compiled at level 1, unless XLA_FLAGS has a level. Benchmarks are compiled as
// for a user, and so are the long runs, which compute for minutes.
func init() {
	const level = "--xla_backend_optimization_level"
	benchmarks := slices.ContainsFunc(os.Args, func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		return name == "test.bench"
	})
	if flags := os.Getenv("XLA_FLAGS"); !benchmarks && !strings.Contains(flags, level) {
		os.Setenv("XLA_FLAGS", strings.TrimSpace(flags+" "+level+"=1")) // of this process: it cannot fail
	}
}

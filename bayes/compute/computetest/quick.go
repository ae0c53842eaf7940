//go:build !long && !digests

package computetest

import (
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// Most of a test's time is XLA's compiling, of which LLVM's higher levels of optimisation take more than half; what
// they save in a test is less. Tests are compiled at level 1, unless XLA_FLAGS has a level, and collect their garbage
// less often: the Go backend leaves some at each node. Benchmarks run as a user's program does, and so do the long
// runs, which compute for minutes.
func init() {
	const level = "--xla_backend_optimization_level"
	if slices.ContainsFunc(os.Args, func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		return name == "test.bench"
	}) {
		return
	}
	debug.SetGCPercent(400)
	if flags := os.Getenv("XLA_FLAGS"); !strings.Contains(flags, level) {
		os.Setenv("XLA_FLAGS", strings.TrimSpace(flags+" "+level+"=1")) // of this process: it cannot fail
	}
}

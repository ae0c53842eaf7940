package computetest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// PeakMemory is the most memory that this process has had, in GiB. Where the system does not tell it skips the test.
func PeakMemory(t testing.TB) float64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kibibytes float64
	if _, err := fmt.Sscan(rest, &kibibytes); err != nil {
		t.Fatal(err)
	}
	return kibibytes / (1 << 20)
}

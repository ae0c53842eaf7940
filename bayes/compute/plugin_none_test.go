//go:build !cgo || noxla || !((linux && (amd64 || arm64)) || (darwin && arm64))

package compute

import (
	"errors"
	"strings"
	"testing"
)

// A build without XLA says that it is the build, not a missing plugin, that keeps it from XLA.
func TestWithoutXLA(t *testing.T) {
	const want = "CGO_ENABLED=1"
	if _, err := Open("xla:/some/plugin.so"); !errors.Is(err, errUnknownBackend) || !strings.Contains(err.Error(), want) {
		t.Errorf("Open: %v does not say %q", err, want)
	}
	if reason := goBackendReason(0); !strings.Contains(reason, want) || strings.Contains(reason, "setup") {
		t.Errorf("why the Go backend: %q, want %q in it", reason, want)
	}
}

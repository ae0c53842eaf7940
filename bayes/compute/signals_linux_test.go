//go:build cgo && linux

package compute_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gobnn/bayes/compute/computetest"
)

// XLA's threads take no signals that are sent to the process: those of its plugin for CPUs, whose names are known.
func TestThreadsWithoutSignals(t *testing.T) {
	if computetest.CPU(t) == nil {
		t.Skip("no XLA on the CPU")
	}
	files := computetest.Must(filepath.Glob("/proc/self/task/*/status"))
	threads := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		var name, blocked string
		for line := range strings.Lines(string(text)) {
			if after, ok := strings.CutPrefix(line, "Name:"); ok {
				name = strings.TrimSpace(after)
			}
			if after, ok := strings.CutPrefix(line, "SigBlk:"); ok {
				blocked = strings.TrimSpace(after)
			}
		}
		if !strings.HasPrefix(name, "tf_XLA") {
			continue
		}
		threads++
		mask := computetest.Must(strconv.ParseUint(blocked, 16, 64))
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGPROF, syscall.SIGURG, syscall.SIGTERM} {
			if mask&(1<<(signal-1)) == 0 {
				t.Errorf("%s takes %v: its mask is %s", name, signal, blocked)
			}
		}
		if mask&(1<<(syscall.SIGSEGV-1)) != 0 {
			t.Errorf("%s does not take its own faults: its mask is %s", name, blocked)
		}
	}
	if threads == 0 {
		t.Errorf("none of %d threads is named as XLA's", len(files))
	}
}

package compute

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"sync"
)

// hostMemory is what a computation on the processors can have: the machine's memory with its swap, or what its
// container may take. Not known on systems without Linux's files. A variable for the tests.
var hostMemory = sync.OnceValues(func() (limit room, known bool) {
	limit.says = "the machine has %s"
	info, err := os.Open("/proc/meminfo")
	if err != nil {
		return limit, false
	}
	defer info.Close() //nolint:errcheck // it was read
	for lines := bufio.NewScanner(info); lines.Scan(); {
		fields := strings.Fields(lines.Text()) // such as "MemTotal: 24600000 kB"
		if len(fields) == 3 && (fields[0] == "MemTotal:" || fields[0] == "SwapTotal:") {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return limit, false
			}
			limit.bytes += kilobytes << 10
		}
	}
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(path)
		if bytes, wrong := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && wrong == nil {
			limit.bytes = min(limit.bytes, bytes) // "max" is no number, and none is a limit
		}
	}
	return limit, limit.bytes > 0
})

// CheckHost is an error before the start if what a computation keeps on the host, in bytes, is more than the machine
// has; what and fewer name it, and what to take less of.
func CheckHost(need int64, what, fewer string) error {
	limit, known := hostMemory()
	if !known {
		return nil
	}
	return limit.check(need, 0, what, fewer)
}

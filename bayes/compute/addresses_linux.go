package compute

import (
	"debug/elf"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// checkAddresses checks that the process's limit on addresses, as a shell or a batch system sets it, has room for a
// plugin: twice what the loader maps of it, since its threads and programs need some too. The system says of this lack
// only that a segment cannot be mapped; if it comes later, it ends the process.
func checkAddresses(path string, library *elf.File) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil || limit.Cur == unix.RLIM_INFINITY {
		return nil
	}
	var pages uint64
	if text, err := os.ReadFile("/proc/self/statm"); err != nil {
		return nil
	} else if _, err := fmt.Sscan(string(text), &pages); err != nil {
		return nil
	}
	need := uint64(0)
	for _, segment := range library.Progs {
		if segment.Type == elf.PT_LOAD {
			need = max(need, 2*(segment.Vaddr+segment.Memsz))
		}
	}
	if used := pages * uint64(os.Getpagesize()); used+need > limit.Cur {
		return fmt.Errorf("%w: %s needs %d MB of addresses beside the %d MB that this program has, and its limit on them "+
			"(ulimit -v) is %d MB: lift it by `ulimit -v unlimited`; where a batch system sets it, ask that for more memory",
			errPluginLoad, path, need>>20, used>>20, limit.Cur>>20)
	}
	return nil
}

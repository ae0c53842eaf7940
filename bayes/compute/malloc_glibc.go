//go:build cgo && linux

package compute

/*
#include <limits.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
static void keep_freed_memory(void) {
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	mallopt(M_MMAP_MAX, 0);
}
static void return_freed_memory(void) { malloc_trim(0); }
#else
static void keep_freed_memory(void) {}
static void return_freed_memory(void) {}
#endif
*/
import "C"

// keepFreedMemory makes glibc keep freed memory. XLA's CPU client allocates its temporaries again in each call; glibc
// would return large ones to the kernel at once, and the next call would cause page faults, which cost up to half of a
// step. Resident memory stays up to a third higher. The number of arenas is not changed: with two, threads would
// compete for free lists that the compiler has fragmented, which is slower. GOBNN_MALLOC=system turns it off.
func keepFreedMemory() { C.keep_freed_memory() }

// returnFreedMemory returns free memory to the kernel, after the compiler has used much.
func returnFreedMemory() { C.return_freed_memory() }

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
	mallopt(M_ARENA_MAX, 2);
}
static void return_freed_memory(void) { malloc_trim(0); }
#else
static void keep_freed_memory(void) {}
static void return_freed_memory(void) {}
#endif
*/
import "C"

// keepFreedMemory tells glibc to keep what is freed. XLA's CPU client allocates its temporaries anew at each call; glibc
// would hand large ones back to the kernel at once, and the next call would fault them in again, which costs up to half of
// a step. Two arenas do as well as the sixteen that two cores would get, each of which would keep its own. Resident memory stays up to a third
// higher. GOBNN_MALLOC=system turns it off.
func keepFreedMemory() { C.keep_freed_memory() }

// returnFreedMemory hands back what is free now: the compiler's leavings, once a program is compiled.
func returnFreedMemory() { C.return_freed_memory() }

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

// keepFreedMemory tells glibc to keep what is freed. XLA's CPU client allocates its temporaries anew at each call;
// glibc would hand large ones back to the kernel at once, and the next call would fault them in again, which costs up
// to half of a step. Resident memory stays up to a third higher. The number of arenas is left as it is: with two, the
// threads' small matrix products search the lists that the compiler has littered, and HMC on a network took 1.4 times
// as long. GOBNN_MALLOC=system turns it off.
func keepFreedMemory() { C.keep_freed_memory() }

// returnFreedMemory hands back what is free now: the compiler's leavings, once a program is compiled.
func returnFreedMemory() { C.return_freed_memory() }

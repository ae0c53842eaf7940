//go:build cgo && linux

package compute

/*
#include <pthread.h>
#include <signal.h>

static sigset_t allowed_before;

static void block_signals(void) {
	sigset_t all;
	sigfillset(&all);
	// faults of the thread itself are not for others to handle
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGABRT);
	sigdelset(&all, SIGTRAP);
	pthread_sigmask(SIG_BLOCK, &all, &allowed_before);
}
static void allow_signals(void) { pthread_sigmask(SIG_SETMASK, &allowed_before, NULL); }
*/
import "C"

import (
	"runtime"
	"sync"
)

var signalsBlocked sync.Mutex

// withoutSignals calls a function that starts threads of C. These take no signals except for their own faults: a thread
// inherits the mask of the thread that starts it. XLA's threads must have none. Signals that Go handled on one of them
// while it ran a kernel compiled for AVX-512 (SIGPROF of a CPU profile; SIGINT of Ctrl-C is another) corrupted the
// heap: 500 a second ended a benchmark of package fbnn within a second, and none of 16 000 did with
// XLA_FLAGS="--xla_cpu_max_isa=AVX2 --xla_cpu_prefer_vector_width=256". A signal to the process goes to a thread that
// takes it, one of Go's. So a CPU profile (go test -cpuprofile) does not see XLA's threads: perf does.
func withoutSignals(f func()) {
	signalsBlocked.Lock()
	defer signalsBlocked.Unlock()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	C.block_signals()
	defer C.allow_signals()
	f()
}

package run

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// onePress is the time after the first signal within which further signals belong to the same press of the stop button:
// Jupyter signals the kernel's process group, which contains the cell, and the kernel then signals the cell once more.
const onePress = time.Second

// Context returns a context that is cancelled by SIGINT, which Ctrl-C and a notebook's stop button send, or by SIGTERM.
// A run with that context then ends with the status Cancelled. If its Settings name a Checkpoint, it writes that file,
// and continues from there when the program runs again. Further signals within a second are ignored, since a stop
// button may send two; a later one ends the program at once, with the status 128 + its number. All calls return the same context.
//
// In a notebook, a cell that was stopped should fail, so that the cells below it do not use the incomplete result:
// return or panic with the result's Status.Err.
func Context() context.Context { return interruptible() }

var interruptible = sync.OnceValue(func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1) // more are dropped
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		received := <-signals
		cancel(fmt.Errorf("%w: signal %v", context.Canceled, received))
		time.Sleep(onePress)
		select {
		case <-signals: // of the same press
		default:
		}
		// Not signal.Reset: a program that began with SIGINT ignored, as a shell's & has it, would ignore it again.
		os.Exit(128 + int((<-signals).(syscall.Signal))) // as shells say it
	}()
	return ctx
})

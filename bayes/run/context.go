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

// Context is the context of a program that may be stopped, such as a notebook's cell: SIGINT, which the notebook's stop
// button and Ctrl-C send, or SIGTERM ends it. A run then writes its checkpoint and ends as Cancelled, and goes on from
// there when the program runs again. Signals within a second are one press of the button; another one, later, ends the
// program at once. All calls return the same context.
//
// A cell that was stopped should fail, so that the cells below it do not go on with the run: test the result's Status
// with Status.Err.
func Context() context.Context { return interruptible() }

var interruptible = sync.OnceValue(func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1) // more are dropped
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		received := <-signals
		cancel(fmt.Errorf("%w: signal %v", context.Canceled, received))
		time.Sleep(onePress)
		signal.Reset(os.Interrupt, syscall.SIGTERM)
	}()
	return ctx
})

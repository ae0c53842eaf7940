package run

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Context is the context of a program that may be stopped, such as a notebook's cell: SIGINT, which the notebook's stop
// button and Ctrl-C send, or SIGTERM ends it. A run then writes its checkpoint and ends as Cancelled, and goes on from
// there when the program runs again. A second signal ends the program at once. All calls return the same context.
//
// A cell that was stopped should fail, so that the cells below it do not go on with the run: test the result's Status
// with Status.Err.
func Context() context.Context { return interruptible() }

var interruptible = sync.OnceValue(func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		received := <-signals
		signal.Reset(os.Interrupt, syscall.SIGTERM)
		cancel(fmt.Errorf("%w: signal %v", context.Canceled, received))
	}()
	return ctx
})

package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
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
// button may send two; a later one ends the program at once, with the status 128 + its number. All calls return the
// same context.
//
// In a notebook, a cell that was stopped should fail, so that the cells below it do not use the incomplete result: call
// Fail with the result's Status.Err.
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

// Fail ends a program, such as a notebook's cell, that cannot go on without what err kept it from, with status 1; what
// is deferred does not run. After a signal that ended Context it says on one line that the cell can go on. Of any other
// error it prints the text, and the lines of the program that led to it.
func Fail(err error) {
	if Context().Err() == nil || !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, callers())
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "stopped: run the cell again to go on with what is kept; without a Checkpoint it begins anew")
	os.Exit(1)
}

// callers lists where the program's package main called Fail, innermost first, without the helper must, which each call
// comes by. A notebook's kernel shows the cell and the line for each.
func callers() string {
	var text strings.Builder
	counters := make([]uintptr, 100)
	frames := runtime.CallersFrames(counters[:runtime.Callers(3, counters)]) // 3: those who called Fail
	for more := true; more; {
		var at runtime.Frame
		at, more = frames.Next()
		if strings.HasPrefix(at.Function, "main.") && !strings.HasPrefix(at.Function, "main.must") {
			fmt.Fprintf(&text, "\t%s:%d\n", at.File, at.Line)
		}
	}
	return text.String()
}

// Watched is a context whose runs call a function after each step, or after several short ones that are made in one
// call of the device. It is called by the goroutine of the run, which goes on when it returns, and ends as cancelled if
// the function cancels the context. A function that the given context already has is called before.
func Watched(ctx context.Context, step func(Progress, Machine)) context.Context {
	if before, ok := ctx.Value(watchKey{}).(func(Progress, Machine)); ok {
		own := step
		step = func(p Progress, m Machine) {
			before(p, m)
			own(p, m)
		}
	}
	return context.WithValue(ctx, watchKey{}, step)
}

type watchKey struct{}

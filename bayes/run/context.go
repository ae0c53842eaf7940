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
	"sync/atomic"
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

// lastStop says where the run stands that was cancelled last.
var lastStop atomic.Pointer[string]

// noteStop keeps for Fail where a cancelled run stands.
func (r *Run) noteStop() {
	at := r.machine.Progress()
	text := fmt.Sprintf("stopped at step %d", at.Step)
	if at.Steps > 0 {
		text += fmt.Sprintf(" of %d", at.Steps)
	}
	if at.Stage != "" {
		text += fmt.Sprintf(" (%s)", at.Stage)
	}
	switch {
	case r.Checkpoint == "":
		text += ", not kept: the run has no Checkpoint; the cell begins it anew"
	case r.err != nil:
		text += fmt.Sprintf(", not kept: %v", r.err)
	default:
		text += ", kept; run the cell again to go on"
	}
	lastStop.Store(&text)
}

// Fail ends a program, such as a notebook's cell, that cannot go on without what err kept it from, with status 1; what
// is deferred does not run. After a signal that ended Context it says on one line where the run stands. Of any other
// error it prints the text, and the lines of the program that led to it.
func Fail(err error) {
	if Context().Err() == nil || !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, callers())
		os.Exit(1)
	}
	text := "stopped; run the cell again to go on with what is kept"
	if last := lastStop.Load(); last != nil {
		text = *last
	}
	fmt.Fprintln(os.Stderr, text)
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

// Watched is a context whose runs call a function after each step. It is called by the goroutine of the run, which goes
// on when it returns, and ends as cancelled if the function cancels the context. A function that the given context
// already has is called before.
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

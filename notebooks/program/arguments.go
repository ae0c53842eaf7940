package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"gobnn/bayes/limits"
	"gobnn/viz/terminal"
)

// ErrUsage is a wrong command line that has been explained already.
var ErrUsage = errors.New("usage")

// Parse reads flags anywhere among the arguments before "--", and returns the other arguments. The help shows text,
// then the flags. The error is flag.ErrHelp, or ErrUsage after the fault has been printed.
func Parse(flags *flag.FlagSet, help string, args []string) (rest []string, err error) {
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), help)
		some := false
		flags.VisitAll(func(*flag.Flag) { some = true })
		if some {
			fmt.Fprint(flags.Output(), "\nflags:\n")
			flags.PrintDefaults()
		}
	}
	var verbatim []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, verbatim = args[:i], args[i+1:]
	}
	for {
		if err := flags.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			fault := err.Error() // once more below the help, where it is seen
			if name, unknown := strings.CutPrefix(fault, "flag provided but not defined: -"); unknown {
				var known []string
				flags.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
				fault = fmt.Sprintf("there is no flag -%s; did you mean -%s?", name,
					strings.Join(limits.Nearest(name, known), ", -"))
			}
			fmt.Fprintf(flags.Output(), "\ngobnn %s: %s\n", flags.Name(), fault)
			return nil, ErrUsage
		}
		if flags.NArg() == 0 {
			return append(rest, verbatim...), nil
		}
		rest = append(rest, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

// Main runs a program and exits with its status. SIGINT or SIGTERM ends run's context, so that it can save its state; a
// second one ends the program at once, with the status for a signal.
func Main(run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var by atomic.Int32 // the signal that ended the context
	go func() {
		received := (<-signals).(syscall.Signal)
		by.Store(int32(received))
		cancel(fmt.Errorf("%w: signal %v", context.Canceled, received))
		// Not signal.Reset: a program that began with SIGINT ignored, as a shell's & has it, would ignore it again.
		os.Exit(128 + int((<-signals).(syscall.Signal)))
	}()
	err := run(ctx)
	os.Exit(status(err, syscall.Signal(by.Load()), os.Stderr))
}

// status returns the exit status of a program that ended with err, and prints err unless it was explained already. The
// status is 0 without an error, 1 for an error and 2 for a wrong command line. As in shells it is 128 plus the number
// of the signal that ended the program (0: none): 130 after SIGINT, 143 after SIGTERM.
func status(err error, by syscall.Signal, stderr io.Writer) int {
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrUsage):
		return 2
	}
	terminal.New(stderr).Print(fmt.Sprint("gobnn: ", err)) // in place of what a run showed
	if by != 0 {
		return 128 + int(by)
	}
	return 1
}

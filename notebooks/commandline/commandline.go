// Package commandline reads the arguments of the notebooks' verbs and ends their programs.
package commandline

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
)

// ErrUsage is a wrong command line that has been explained already.
var ErrUsage = errors.New("usage")

// Parse reads flags wherever they stand among the arguments, and returns the other arguments. What follows "--" is no flag.
// The help shows text, then the flags. The error is flag.ErrHelp, or ErrUsage after the fault has been printed.
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
			return nil, ErrUsage
		}
		if flags.NArg() == 0 {
			return append(rest, verbatim...), nil
		}
		rest = append(rest, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

// Status is the exit status of a program that ended with err, which it prints unless it is explained already: 0, 1 for a fault,
// 2 for a wrong command line, 130 where a signal ended it.
func Status(err error, interrupted bool, stderr io.Writer) int {
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrUsage):
		return 2
	}
	fmt.Fprintln(stderr, "gobnn:", err)
	if interrupted {
		return 130
	}
	return 1
}

package commandline

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		args, rest []string
		number     int
		err        error
	}{
		"flags last":      {[]string{"a", "b", "-n", "3"}, []string{"a", "b"}, 3, nil},
		"flags between":   {[]string{"a", "-n=3", "b"}, []string{"a", "b"}, 3, nil},
		"flags first":     {[]string{"-n", "3", "a"}, []string{"a"}, 3, nil},
		"none":            {nil, nil, 0, nil},
		"after --":        {[]string{"a", "-n", "3", "--", "-x", "b"}, []string{"a", "-x", "b"}, 3, nil},
		"unknown flag":    {[]string{"a", "-x"}, nil, 0, ErrUsage},
		"not a number":    {[]string{"-n", "x"}, nil, 0, ErrUsage},
		"help, after all": {[]string{"a", "-h"}, nil, 0, flag.ErrHelp},
	} {
		t.Run(name, func(t *testing.T) {
			flags := flag.NewFlagSet("verb", flag.ContinueOnError)
			var said bytes.Buffer
			flags.SetOutput(&said)
			number := flags.Int("n", 0, "a `number`")
			rest, err := Parse(flags, "usage: verb\n", c.args)
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err != nil {
				if !strings.Contains(said.String(), "usage: verb") || !strings.Contains(said.String(), "-n number") {
					t.Errorf("the help is %q", said.String())
				}
				return
			}
			if !slices.Equal(rest, c.rest) || *number != c.number {
				t.Errorf("rest %q, number %d; want %q, %d", rest, *number, c.rest, c.number)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	fault := errors.New("fault")
	for _, c := range []struct {
		err         error
		interrupted bool
		status      int
	}{
		{nil, false, 0}, {nil, true, 0}, {flag.ErrHelp, false, 0}, {fmt.Errorf("x: %w", ErrUsage), false, 2}, {fault, false, 1}, {fault, true, 130},
	} {
		if got := Status(c.err, c.interrupted, io.Discard); got != c.status {
			t.Errorf("status of %v (interrupted: %v): %d, want %d", c.err, c.interrupted, got, c.status)
		}
	}
}

package program

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gobnn/notebooks/tested"
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
				last := map[string]string{"unknown flag": "gobnn verb: there is no flag -x; did you mean -n?\n",
					"not a number": "gobnn verb: invalid value \"x\" for flag -n: parse error\n"}[name]
				if !strings.HasSuffix(said.String(), last) {
					t.Errorf("it ends with %q, want %q", said.String(), last)
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
		err    error
		by     syscall.Signal
		status int
	}{
		{nil, 0, 0}, {nil, syscall.SIGTERM, 0}, {flag.ErrHelp, 0, 0}, {fmt.Errorf("x: %w", ErrUsage), 0, 2}, {fault, 0, 1},
		{fault, syscall.SIGINT, 130}, {fault, syscall.SIGTERM, 143},
	} {
		if got := status(c.err, c.by, io.Discard); got != c.status {
			t.Errorf("status of %v (signal: %v): %d, want %d", c.err, c.by, got, c.status)
		}
	}
}

// A program is told of a signal, writes what it keeps, and ends with the status that a shell expects; deaf, it ends at
// the second signal, also where it began with SIGINT ignored, as a shell begins what is to run in the background.
func TestMainBySignal(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		deaf   bool
		trap   string
		status int
	}{
		{syscall.SIGINT, false, "-", 130}, {syscall.SIGTERM, false, "-", 143}, {syscall.SIGTERM, true, "-", 143},
		{syscall.SIGINT, true, "''", 130},
	} {
		command := exec.Command("sh", "-c", "trap "+c.trap+` INT; exec "$0"`, os.Args[0])
		command.Env = append(os.Environ(), "GOBNN_TEST_MAIN="+map[bool]string{false: "heeds", true: "deaf"}[c.deaf])
		out := tested.Must(command.StdoutPipe())
		tested.NoError(command.Start())
		said := bufio.NewReader(out)
		line := func(want string) {
			t.Helper()
			if got, err := said.ReadString('\n'); got != want+"\n" {
				t.Errorf("%v: it says %q (%v), want %q", c.signal, got, err, want)
			}
		}
		for _, says := range map[bool][]string{false: {"runs", "kept"}, true: {"runs", "told"}}[c.deaf] {
			line(says)
			if says != "kept" {
				tested.NoError(command.Process.Signal(c.signal))
			}
		}
		stuck := time.AfterFunc(10*time.Second, func() { command.Process.Kill() }) //nolint:errcheck // the status is -1
		command.Wait()                                                             //nolint:errcheck // see the status
		stuck.Stop()
		if got := command.ProcessState.ExitCode(); got != c.status {
			t.Errorf("%v (deaf: %v): status %d, want %d", c.signal, c.deaf, got, c.status)
		}
	}
}

// TestMain is the program of TestMainBySignal where the environment asks for it.
func TestMain(m *testing.M) {
	switch os.Getenv("GOBNN_TEST_MAIN") {
	case "heeds":
		Main(func(ctx context.Context) error {
			fmt.Println("runs")
			<-ctx.Done()
			fmt.Println("kept")
			return ctx.Err()
		})
	case "deaf":
		Main(func(ctx context.Context) error {
			fmt.Println("runs")
			<-ctx.Done()
			fmt.Println("told")
			select {}
		})
	}
	os.Exit(m.Run())
}

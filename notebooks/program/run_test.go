package program

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gobnn/notebooks/tested"
)

func shell(script string) Command { return Command{Args: []string{"/bin/sh", "-c", script}} }

func TestLines(t *testing.T) {
	var got []string
	c := shell(`printf 'one\ntwo\r\n'; printf 'three' >&2`)
	c.Line = func(line string) { got = append(got, line) }
	tested.NoError(Run(context.Background(), c))
	if want := []string{"one", "two", "three"}; !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
	if out, err := Output(context.Background(), shell("echo '  a '; echo b")); err != nil || out != "a \nb" {
		t.Errorf("Output %q, %v", out, err)
	}
}

func TestFailure(t *testing.T) {
	err := Run(context.Background(), shell(`i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); done; exit 7`))
	var failed *Error
	if !errors.As(err, &failed) {
		t.Fatalf("error %v, want an *Error", err)
	}
	if failed.Program != "sh" || !strings.HasSuffix(failed.Output, "line 39") ||
		strings.Contains(failed.Output, "line 14\n") {
		t.Errorf("program %q, output %q: want the last %d lines of sh", failed.Program, failed.Output, kept)
	}
	if !strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), "    line 39") {
		t.Errorf("it says %q", err)
	}
	if err := Run(context.Background(), Command{Args: []string{"/no/such/program"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v for a program that is not there", err)
	}
}

// TestStop: the end of the context ends the program's children too, also those that ignore being asked.
func TestStop(t *testing.T) {
	for name, child := range map[string]string{
		"willing": `sleep 60 & echo $! > "$PIDFILE"; wait`,
		"deaf":    `trap '' TERM; sleep 60 & echo $! > "$PIDFILE"; while true; do wait; done`,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pid")
			c := shell(child)
			c.Env = append(os.Environ(), "PIDFILE="+file)
			c.End = 300 * time.Millisecond
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var pid int
			go func() {
				for pid == 0 {
					text, _ := os.ReadFile(file)
					pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
					time.Sleep(5 * time.Millisecond)
				}
				cancel()
			}()
			if err := Run(ctx, c); !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v, want context.Canceled", err)
			}
			deadline := time.Now().Add(5 * time.Second)
			for syscall.Kill(pid, 0) == nil && !zombie(pid) {
				if time.Now().After(deadline) {
					t.Fatalf("child %d is still alive", pid)
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
}

// zombie says whether a process is dead and only waits for its parent, which may be slow where init is.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z")
}

// TestHold: a program keeps the file open that it is given.
func TestHold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "held")
	file := tested.Must(os.Create(path))
	defer file.Close()
	c := shell("echo through the descriptor >&3")
	c.Hold = file
	tested.NoError(Run(context.Background(), c))
	if text, err := os.ReadFile(path); err != nil || string(text) != "through the descriptor\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// Package program is what the notebooks' programs share: it reads their arguments and ends them by an error or a
// signal, runs other programs, whose output it passes on line by line, and changes GOFLAGS.
package program

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Command is a program to run. Its standard input is empty.
type Command struct {
	Args []string      // the program and its arguments
	Dir  string        // where it runs; empty: here
	Env  []string      // its environment; nil: this one's
	Line func(string)  // gets each line of its output, standard and error; nil: none
	End  time.Duration // time to end after SIGTERM, before SIGKILL; 0: 5 s
	Hold *os.File      // a file that it keeps open, such as a lock; nil: none
}

// Error is a program that failed, with the last lines it said.
type Error struct {
	Program string
	Output  string // the last lines of its output
	Err     error
}

func (e *Error) Error() string {
	if e.Output == "" {
		return fmt.Sprintf("%s: %v", e.Program, e.Err)
	}
	return fmt.Sprintf("%s: %v\n%s", e.Program, e.Err, indent(e.Output))
}

func (e *Error) Unwrap() error { return e.Err }

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

// Run runs a program to its end. It runs in a process group of its own: when the context ends, the group is asked to
// end (SIGTERM) and, after Command.End, killed. The error is an *Error, or wraps the context's.
func Run(ctx context.Context, c Command) error {
	end := c.End
	if end == 0 {
		end = 5 * time.Second
	}
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Env = c.Dir, c.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = end
	if c.Hold != nil {
		cmd.ExtraFiles = []*os.File{c.Hold}
	}
	output := &lines{each: c.Line}
	cmd.Stdout, cmd.Stderr = output, output
	err := cmd.Run()
	if cmd.Process != nil && ctx.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the rest of the group, if any
	}
	output.flush()
	program := filepath.Base(c.Args[0])
	if ctx.Err() != nil {
		return fmt.Errorf("%s stopped: %w", program, context.Cause(ctx))
	}
	if err != nil {
		return &Error{Program: program, Output: strings.Join(output.last, "\n"), Err: err}
	}
	return nil
}

// Output runs a program and returns its output, without surrounding space.
func Output(ctx context.Context, c Command) (string, error) {
	var all []string
	c.Line = func(line string) { all = append(all, line) }
	err := Run(ctx, c)
	return strings.TrimSpace(strings.Join(all, "\n")), err
}

// kept is the number of lines that an Error shows.
const kept = 25

// lines is a writer that passes on lines and keeps the last ones.
type lines struct {
	mu   sync.Mutex
	each func(string)
	part []byte
	last []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, p...)
	for {
		i := bytes.IndexByte(l.part, '\n')
		if i < 0 {
			return len(p), nil
		}
		l.take(string(l.part[:i]))
		l.part = l.part[i+1:]
	}
}

// flush takes the rest as a line.
func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.take(string(l.part))
		l.part = nil
	}
}

func (l *lines) take(line string) {
	line = strings.TrimRight(line, "\r")
	if l.last = append(l.last, line); len(l.last) > kept {
		l.last = l.last[1:]
	}
	if l.each != nil {
		l.each(line)
	}
}

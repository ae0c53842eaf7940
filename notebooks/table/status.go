package main

import (
	"fmt"
	"io"
	"time"

	"gobnn/bayes/run"
	"gobnn/notebooks/program"
)

// status shows where a run stands: on a terminal in one line, elsewhere in a line every ten seconds.
type status struct {
	out      io.Writer
	terminal bool
	last     time.Time
}

func newStatus(out io.Writer) *status {
	return &status{out: out, terminal: program.Terminal(out), last: time.Now()}
}

// show prints the line.
func (s *status) show(p run.Progress) {
	every := 10 * time.Second
	if s.terminal {
		every = time.Second / 2
	}
	if p.Status != "" || time.Since(s.last) < every { // the verb says itself how the run ended
		return
	}
	s.last = time.Now()
	line := fmt.Sprintf("%s: step %d", p.Stage, p.Step)
	if p.Steps > 0 {
		line += fmt.Sprintf(" of %d", p.Steps)
	}
	line += fmt.Sprintf(", %.0f s", p.Elapsed.Seconds())
	if s.terminal {
		letters := []rune(line)
		fmt.Fprint(s.out, "\r\x1b[K"+string(letters[:min(len(letters), program.Width(s.out)-1)]))
		return
	}
	fmt.Fprintln(s.out, line)
}

// clear removes the line.
func (s *status) clear() {
	if s.terminal {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
}

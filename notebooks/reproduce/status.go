package main

import (
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"gobnn/notebooks/program"
	"gobnn/notebooks/study"
	"gobnn/notebooks/took"
)

// status shows where a study stands: on a terminal one line that is written again in place each second, below the lines
// that stay; elsewhere a line where a repetition begins.
type status struct {
	out      io.Writer
	terminal bool
	width    func() int
	recorded map[took.Row]took.Cost
	now      func() time.Time

	mu   sync.Mutex
	pace study.Pace
}

func newStatus(out io.Writer, recorded map[took.Row]took.Cost) *status {
	return &status{out: out, terminal: program.Terminal(out), width: func() int { return program.Width(out) },
		recorded: recorded, now: time.Now}
}

// tick draws the line each second until stop is called.
func (s *status) tick() (stop func()) {
	if !s.terminal {
		return func() {}
	}
	end := study.EachSecond(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.draw()
	})
	return func() {
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pace.Running = false
		s.clear()
	}
}

// say prints a line that stays.
func (s *status) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintln(s.out, line)
	s.draw()
}

// repetition takes note of one that begins or is done.
func (s *status) repetition(r study.Repetition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pace.Note(r, s.now())
	switch {
	case r.Kept:
	case r.Done:
		s.clear()
	default:
		if !s.terminal {
			fmt.Fprintln(s.out, s.line())
		}
		s.draw()
	}
}

// line is the study, the data set, the repetition, the method, the time so far, and what this row has left: by the
// repetitions that ran now, or those recorded with the project; nothing where neither is known.
func (s *status) line() string {
	now, at := s.now(), s.pace.At
	line := fmt.Sprintf("%s: %s, repetition %d of %d, %s, %v", at.Study, at.Data, at.Number, at.Of, at.Method,
		s.pace.Elapsed(now).Round(time.Second))
	cost := s.recorded[took.Row{Study: at.Study, Data: at.Data, Method: at.Method}]
	if left, known := s.pace.Left(now, cost.Seconds/math.Max(1, float64(cost.Repetitions))); known {
		line += fmt.Sprintf(", about %s left of this method", took.Text(left))
	}
	return line
}

func (s *status) clear() {
	if s.terminal {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
}

// draw writes the line in place, cut to the terminal's width: a longer one would scroll.
func (s *status) draw() {
	if !s.terminal || !s.pace.Running {
		return
	}
	line := []rune(s.line())
	fmt.Fprintf(s.out, "\r\x1b[K%s", string(line[:min(len(line), max(1, s.width()-1))]))
}

package main

import (
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"gobnn/notebooks/commandline"
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

	mu       sync.Mutex
	at       study.Repetition // while it runs
	running  bool
	began    time.Time
	mean     float64 // seconds of a repetition of this row that ran now
	measured int
	computed int // repetitions of this study
	kept     int // those that were computed before
}

func newStatus(out io.Writer, recorded map[took.Row]took.Cost) *status {
	return &status{out: out, terminal: commandline.Terminal(out), width: func() int { return commandline.Width(out) },
		recorded: recorded, now: time.Now}
}

// tick draws the line each second until stop is called.
func (s *status) tick() (stop func()) {
	if !s.terminal {
		return func() {}
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				s.mu.Lock()
				s.draw()
				s.mu.Unlock()
			}
		}
	}()
	return func() {
		close(ended)
		<-done
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running = false
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
	if r.Study != s.at.Study || r.Data != s.at.Data || r.Method != s.at.Method {
		s.mean, s.measured = 0, 0
	}
	s.at = r
	switch {
	case r.Kept:
		s.kept++
	case r.Done:
		s.running = false
		s.computed++
		s.measured++
		s.mean += (r.Seconds - s.mean) / float64(s.measured)
		s.clear()
	default:
		s.running, s.began = true, s.now()
		if !s.terminal {
			fmt.Fprintln(s.out, s.line())
		}
		s.draw()
	}
}

// line is the study, the data set, the repetition, the method, the time so far, and what this row has left: by the
// repetitions that ran now, or those recorded with the project; nothing where neither is known.
func (s *status) line() string {
	elapsed := s.now().Sub(s.began)
	line := fmt.Sprintf("%s: %s, repetition %d of %d, %s, %v", s.at.Study, s.at.Data, s.at.Number, s.at.Of, s.at.Method,
		elapsed.Round(time.Second))
	each := s.mean
	if s.measured == 0 {
		cost := s.recorded[took.Row{Study: s.at.Study, Data: s.at.Data, Method: s.at.Method}]
		each = cost.Seconds / math.Max(1, float64(cost.Repetitions))
	}
	if each > 0 {
		left := math.Max(each-elapsed.Seconds(), 0) + each*float64(s.at.Of-s.at.Number)
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
	if !s.terminal || !s.running {
		return
	}
	line := []rune(s.line())
	fmt.Fprintf(s.out, "\r\x1b[K%s", string(line[:min(len(line), max(1, s.width()-1))]))
}

// counted are the repetitions since it was last asked: computed, and kept from before.
func (s *status) counted() (computed, kept int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	computed, kept = s.computed, s.kept
	s.computed, s.kept = 0, 0
	return computed, kept
}

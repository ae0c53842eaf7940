package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"gobnn/notebooks/study"
	"gobnn/notebooks/took"
)

// The line says what is left by what was recorded, then by the repetitions that ran, and nothing where nothing is
// known. On a terminal it is cleared before a line that stays, and is no wider than the terminal.
func TestStatus(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	s := newStatus(&out, map[took.Row]took.Cost{{Study: "ohsmc.table1", Data: "wave", Method: "VB"}: {Seconds: 60,
		Repetitions: 3}})
	s.now = func() time.Time { return now }
	at := study.Repetition{Study: "ohsmc.table1", Data: "wave", Method: "VB", Number: 1, Of: 3}
	s.repetition(at)
	now = now.Add(10 * time.Second)
	said := func(want string) {
		t.Helper()
		if got := s.line(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	said("ohsmc.table1: wave, repetition 1 of 3, VB, 10s, about 50 s left of this method")
	at.Done, at.Seconds = true, 100
	s.repetition(at)
	at.Done, at.Number = false, 2
	s.repetition(at)
	said("ohsmc.table1: wave, repetition 2 of 3, VB, 0s, about 3 min left of this method")
	other := study.Repetition{Study: "ohsmc.table1", Data: "wave", Method: "new", Number: 1, Of: 1}
	s.repetition(other)
	said("ohsmc.table1: wave, repetition 1 of 1, new, 0s")
	if text := out.String(); strings.Count(text, "\n") != 3 || strings.ContainsAny(text, "\r\x1b") {
		t.Errorf("in a pipe: %q", text)
	}
	s.repetition(study.Repetition{Study: "ohsmc.table1", Done: true, Kept: true})

	out.Reset()
	s.terminal, s.width = true, func() int { return 20 }
	stop := s.tick()
	s.repetition(other)
	s.say("a line")
	stop()
	want := "\r\x1b[Kohsmc.table1: wave,"
	if got := out.String(); got != want+"\r\x1b[Ka line\n"+want+"\r\x1b[K" {
		t.Errorf("on a terminal: %q", got)
	}
}

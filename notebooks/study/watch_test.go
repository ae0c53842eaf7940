package study

import (
	"testing"
	"time"
)

// A bar says which repetition runs and how long it has, and once one of its method is done what is left of it.
func TestWatch(t *testing.T) {
	at := time.Unix(1000, 0)
	w := &watch{now: func() time.Time { return at }}
	says := func(want string) {
		t.Helper()
		if got := w.line(); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	first := Repetition{Study: "s", Data: "wine_red", Method: "VI", Number: 1, Of: 3}
	w.note(first)
	at = at.Add(4 * time.Second)
	says("red wine, VI, 4s")
	done := first
	done.Done, done.Seconds = true, 10
	w.note(done)
	second := first
	second.Number = 2
	w.note(second)
	at = at.Add(4 * time.Second)
	says("red wine, VI, 4s, about 16s left of this method")
	kept := Repetition{Data: "yacht", Method: "VI", Number: 1, Of: 1, Done: true, Kept: true}
	w.note(kept)
	if w.pace.mean != 0 || w.pace.Computed != 1 || w.pace.Kept != 1 || w.summary() != "1 computed, 1 kept from before" {
		t.Errorf("after a kept one of other data: %q, mean %v", w.summary(), w.pace.mean)
	}
	if all := (&watch{pace: Pace{Kept: 2}}).summary(); all != "from kept results" {
		t.Errorf("of kept ones alone it says %q", all)
	}
}

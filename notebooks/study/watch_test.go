package study

import (
	"testing"
	"time"
)

// A bar says which repetition runs and how long it has, and once one of its method is done what is left of it.
func TestWatch(t *testing.T) {
	at := time.Unix(1000, 0)
	w := &watch{now: func() time.Time { return at }, began: at.Add(-87 * time.Second)}
	ends := func(w *watch, steps int, note string) {
		t.Helper()
		if gotSteps, got := w.end(); gotSteps != steps || got != note {
			t.Errorf("it ends at %d with %q, want %d with %q", gotSteps, got, steps, note)
		}
	}
	ends(w, 1, "computed in 1m27s, keeps no results")
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
	if w.pace.mean != 0 {
		t.Errorf("after a kept one of other data: mean %v", w.pace.mean)
	}
	ends(w, 2, "1 computed, 1 kept from before")
	ends(&watch{pace: Pace{Kept: 2}}, 2, "from kept results")
}

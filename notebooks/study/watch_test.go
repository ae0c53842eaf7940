package study

import (
	"testing"
	"time"

	"gobnn/notebooks/took"
)

// A bar shows which repetition runs and how long it has, and what is left of its method: by those that are recorded,
// then by those that ran now.
func TestWatch(t *testing.T) {
	at := time.Unix(1000, 0)
	w := &watch{id: "s", now: func() time.Time { return at }, began: at.Add(-87 * time.Second),
		recorded: took.Times{{Study: "s", Data: "wine_red", Method: "VI"}: {Seconds: 60, Repetitions: 3}}}
	ends := func(w *watch, steps int, note string) {
		t.Helper()
		if gotSteps, got := w.end(); gotSteps != steps || got != note {
			t.Errorf("it ends at %d with %q, want %d with %q", gotSteps, got, steps, note)
		}
	}
	ends(w, 1, "computed in 1m27s, keeps no results")
	shows := func(e event, want string) {
		t.Helper()
		w.note(e)
		at = at.Add(4 * time.Second)
		if got := w.line(); got != want {
			t.Errorf("it shows %q, want %q", got, want)
		}
	}
	first := event{Study: "s", Data: "wine_red", Method: "VI", Number: 1, Of: 3}
	shows(first, "about 56 s left of this method: red wine, VI, 4s")
	done, second := first, first
	done.Done, done.Seconds = true, 10
	w.note(done)
	second.Number = 2
	shows(second, "about 16 s left of this method: red wine, VI, 4s")
	w.note(event{Data: "yacht", Method: "VI", Number: 1, Of: 1, Done: true, Kept: true})
	ends(w, 2, "1 computed, 1 kept from before")
	shows(event{Data: "yacht", Method: "MAP", Number: 1, Of: 1}, "yacht, MAP, 4s")
	ends(&watch{kept: 2}, 2, "from kept results")
}

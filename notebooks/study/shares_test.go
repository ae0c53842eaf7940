package study

import (
	"context"
	"slices"
	"testing"
	"time"
)

// Every study that can be run has one share, and no other.
func TestShares(t *testing.T) {
	shared := InTurn()
	for _, s := range shares {
		if !(s.hours > 0) {
			t.Errorf("%+v", s)
		}
	}
	var known []string
	for _, e := range All() {
		known = append(known, e.ID)
	}
	slices.Sort(shared)
	slices.Sort(known)
	if !slices.Equal(shared, known) {
		t.Errorf("shares are of %q, studies are %q", shared, known)
	}
	if hours := Hours(); hours > 24 {
		t.Errorf("all take %v hours, want at most a day", hours)
	}
	if o := (Options{}).OfAll("ohsmc.fig2", 8); o.Seconds != 8*3600*.2/Hours() || o.Reps != 0 {
		t.Errorf("%+v", o)
	}
}

// Repetitions go round by round until their seconds are spent; what was kept before counts, so that an interruption
// changes nothing. The first of each trial is made in any case.
func TestRounds(t *testing.T) {
	made := map[string]int{}
	trials := func(o Options) (all []*trial, err error) {
		for name, took := range map[string]float64{"slow": .09, "quick": .03} {
			all = append(all, &trial{Key: Key{Study: "rounds", Data: "d", Method: name}, reps: o.Reps,
				run: func(context.Context, int) (Result, error) {
					made[name]++
					time.Sleep(time.Duration(took * float64(time.Second)))
					return Result{Values: map[string]float64{"x": 1}}, nil
				}})
		}
		slices.SortFunc(all, func(a, b *trial) int { return len(b.Method) - len(a.Method) })
		return all, nil
	}
	o := Options{CacheDir: t.TempDir(), Reps: 6, Seconds: .001}
	for _, c := range []struct {
		seconds     float64
		slow, quick int
	}{{.001, 1, 1}, {.3, 2, 6}, {.3, 2, 6}, {9, 6, 6}} {
		o.Seconds = c.seconds
		if _, err := (Experiment{ID: "rounds", trials: trials}).Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if made["slow"] != c.slow && c.seconds != .3 || made["quick"] < made["slow"] || made["quick"] > 6 {
			t.Errorf("after %v s: %v, want %d slow and %d quick", c.seconds, made, c.slow, c.quick)
		}
	}
}

package study

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Repetitions that were distributed are kept with the commit and found by the study: no one is made again, and their
// folders are gone.
func TestDistribute(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	t.Setenv("GOBNN_CACHE", t.TempDir())
	e := must(Find("ohsmc.table8"))
	var lines []string
	o := Options{Data: []string{"yacht"}, Methods: []string{"MAP"}, Reps: 2, Epochs: 1, Commit: "abc",
		Progress: func(line string) { lines = append(lines, line) }}
	failOn(Distribute(t.Context(), "", []Experiment{e, e}, o))
	if said := strings.Join(lines, "\n"); strings.Count(said, "done, 1 of 2") != 1 ||
		strings.Count(said, "done, 2 of 2") != 1 {
		t.Errorf("it said %q", said)
	}
	kept := 0
	o.event = func(r event) {
		if r.Kept {
			kept++
		}
	}
	cells := must(e.Run(t.Context(), o))
	if kept != 2 || len(cells) == 0 || cells[0].Commit != "abc" || cells[0].Reps != 2 {
		t.Errorf("%d kept repetitions; cells %+v", kept, cells)
	}
	left, err := os.ReadDir(filepath.Join(os.Getenv("GOBNN_CACHE"), "cluster"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	lines = nil
	if err := Distribute(t.Context(), "", []Experiment{e}, o); err != nil || len(lines) > 0 {
		t.Errorf("all are kept, and it said %q (%v)", lines, err)
	}
}

// What a repetition keeps of its own, under other keys, is found at home with the commit, as the repetition is. Figures
// without repetitions are left to Run.
func TestDistributeParts(t *testing.T) {
	t.Setenv("GOBNN_CACHE", t.TempDir())
	runs := 0
	once := func(_ context.Context, repetition int) (Result, error) {
		runs++
		return Result{Values: map[string]float64{"log Z": -3, "error": math.NaN()},
			Series: map[string][]float64{"powers": {0, .5, 1}}}, nil
	}
	keys := []Key{{Study: "pmcnet.evidence", Data: "linear, learnt", Method: "quick"},
		{Study: "pmcnet.evidence", Data: "linear, learnt", Method: "whole", Settings: map[string]any{"arrow": "a -> b"}}}
	e := Experiment{ID: "pmcnet.evidence", trials: func(Options) ([]*trial, error) {
		return []*trial{{Key: Key{Study: "pmcnet.evidence", Data: "linear, learnt", Method: "row"}, reps: 1,
			run: func(ctx context.Context, _ int) (Result, error) {
				for _, k := range keys {
					if _, err := keeper(ctx).Repeat(ctx, k, 2, once); err != nil {
						return Result{}, err
					}
				}
				return Result{}, nil
			}}}, nil
	}}
	o := Options{Commit: "abc"}
	for range 2 {
		failOn(Distribute(t.Context(), "", []Experiment{e}, o))
	}
	home := must(OpenStore(o))
	for _, k := range keys {
		results, err := home.Repeat(t.Context(), k, 2, once)
		if err != nil || len(results) != 2 || results[1].Commit != "abc" || len(results[1].Series["powers"]) != 3 {
			t.Errorf("%s: %+v (%v)", k.Method, results, err)
		}
	}
	if runs != 4 {
		t.Errorf("%d repetitions were run, want 4", runs)
	}
}

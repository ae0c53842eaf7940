package study

import (
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
	e, err := Find("ohsmc.table8")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	o := Options{Data: []string{"yacht"}, Methods: []string{"MAP"}, Reps: 2, Epochs: 1, Commit: "abc",
		Progress: func(line string) { lines = append(lines, line) }}
	if err := Distribute(t.Context(), "", []Experiment{e, e}, o); err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(lines, "\n"); strings.Count(said, "done, 1 of 2") != 1 ||
		strings.Count(said, "done, 2 of 2") != 1 {
		t.Errorf("it said %q", said)
	}
	kept := 0
	o.Repetition = func(r Repetition) {
		if r.Kept {
			kept++
		}
	}
	cells, err := e.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
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

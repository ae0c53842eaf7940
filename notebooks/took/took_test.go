package took

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The cells of a row share its seconds, which count once; a row that was not measured counts not at all.
func TestRecorded(t *testing.T) {
	root := filepath.Join(t.TempDir(), "my [clone]")
	folder := filepath.Join(root, "notebooks", "results")
	write(t, filepath.Join(folder, "ohsmc.fig1.json"), `{"study": "ohsmc.fig1", "cells": [
		{"data": "a", "method": "m", "metric": "x", "reps": 2, "seconds": 30},
		{"data": "a", "method": "m", "metric": "y", "reps": 2, "seconds": 30},
		{"data": "a", "method": "another estimate of m", "metric": "x", "reps": 2, "seconds": 30},
		{"data": "a", "method": "n", "metric": "x", "reps": 1, "seconds": 4},
		{"data": "b", "method": "n", "metric": "x", "reps": 0, "seconds": null}]}`)
	rows, err := Recorded(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := rows[Row{"ohsmc.fig1", "a", "m"}]; got != (Cost{30, 2}) || len(rows) != 3 {
		t.Errorf("%v in %v", got, rows)
	}
	if got := Study(rows, "ohsmc.fig1"); got != 34 {
		t.Errorf("study: %v s, want 34", got)
	}
	notebook := filepath.Join(root, "notebooks", "n.ipynb")
	write(t, notebook, `{"cells": [{"cell_type": "code", "source": ["figure(\"ohsmc.fig1\")\n", "figure(\"ohsmc.fig1\")"]},
		{"cell_type": "markdown", "source": ["\"ohsmc.table1\""]}]}`)
	if got, untimed, err := Notebook(rows, notebook); err != nil || got != 34 || len(untimed) > 0 {
		t.Errorf("notebook: %v s, not timed %q, %v; want 34", got, untimed, err)
	}
	write(t, notebook, `{"cells": [{"cell_type": "code", "source": ["figure(\"ohsmc.fig1\"); table(\"ohsmc.table8\")"]}]}`)
	if got, untimed, err := Notebook(rows, notebook); err != nil || got != 34 ||
		!slices.Equal(untimed, []string{"ohsmc.table8"}) {
		t.Errorf("notebook: %v s, not timed %q, %v; want 34 without ohsmc.table8", got, untimed, err)
	}
	write(t, filepath.Join(folder, "bad.json"), "{")
	if _, err := Recorded(root); err == nil || !strings.Contains(err.Error(), "bad.json") {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestNote(t *testing.T) {
	t.Setenv("GOBNN_CACHE", filepath.Join(t.TempDir(), "new"))
	for _, kept := range []bool{false, true, true} {
		if err := Note("a.ipynb", map[bool]float64{false: 90, true: 3}[kept], kept); err != nil {
			t.Fatal(err)
		}
	}
	times, err := Measured()
	if err != nil {
		t.Fatal(err)
	}
	if got := times["a.ipynb"]; got != (Here{Nothing: 90, Kept: 3}) {
		t.Errorf("%v", got)
	}
	if got, want := Line(times["a.ipynb"], 7000), "here from nothing 90 s, here from kept results 3.0 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Line(Here{}, 7000), "what is recorded took 117 min from nothing"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Line(Here{}, 60, "a.fig1", "a.table8"), "what is recorded took 60 s from nothing, without a.fig1, "+
		"a.table8, which are not timed yet"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Line(Here{Nothing: 90}, 60, "a.table8"), "here from nothing 90 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	write(t, filepath.Join(os.Getenv("GOBNN_CACHE"), "took.json"), "{")
	if _, err := Measured(); err == nil || !strings.Contains(err.Error(), "remove") {
		t.Errorf("a damaged file: %v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

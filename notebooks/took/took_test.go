package took

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/notebooks/tested"
)

// The cells of a row share its seconds, which count once; a row that was not measured counts not at all.
func TestRecorded(t *testing.T) {
	root := filepath.Join(t.TempDir(), "my [clone]")
	folder := filepath.Join(root, "notebooks", "results")
	tested.Write(filepath.Join(folder, "ohsmc.fig1.json"), `{"study": "ohsmc.fig1", "cells": [
		{"data": "a", "method": "m", "metric": "x", "reps": 2, "seconds": 30},
		{"data": "a", "method": "m", "metric": "y", "reps": 2, "seconds": 30},
		{"data": "a", "method": "another estimate of m", "metric": "x", "reps": 2, "seconds": 30},
		{"data": "a", "method": "n", "metric": "x", "reps": 1, "seconds": 4},
		{"data": "b", "method": "n", "metric": "x", "reps": 0, "seconds": null}]}`)
	rows := tested.Must(Recorded(os.DirFS(folder)))
	if got := rows[Row{"ohsmc.fig1", "a", "m"}]; got != (Cost{30, 2}) || len(rows) != 3 {
		t.Errorf("%v in %v", got, rows)
	}
	if got := rows.Study("ohsmc.fig1"); got != 34 {
		t.Errorf("study: %v s, want 34", got)
	}
	notebook := filepath.Join(root, "notebooks", "n.ipynb")
	tested.Write(notebook, `{"cells": [{"cell_type": "code",
		"source": ["figure(\"ohsmc.fig1\")\n", "figure(\"ohsmc.fig1\")"]},
		{"cell_type": "markdown", "source": ["\"ohsmc.table1\""]}]}`)
	if got, untimed, err := rows.Notebook(notebook); err != nil || got != 34 || len(untimed) > 0 {
		t.Errorf("notebook: %v s, not timed %q, %v; want 34", got, untimed, err)
	}
	tested.Write(notebook, `{"cells": [{"cell_type": "code",
		"source": ["figure(\"ohsmc.fig1\"); table(\"ohsmc.table8\")"]}]}`)
	if got, untimed, err := rows.Notebook(notebook); err != nil || got != 34 ||
		!slices.Equal(untimed, []string{"ohsmc.table8"}) {
		t.Errorf("notebook: %v s, not timed %q, %v; want 34 without ohsmc.table8", got, untimed, err)
	}
	tested.Write(filepath.Join(folder, "bad.json"), "{")
	if _, err := Recorded(os.DirFS(folder)); err == nil || !strings.Contains(err.Error(), "bad.json") {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestLine(t *testing.T) {
	for want, got := range map[string]string{
		"": Line(0, "a.fig1"),
		"what is recorded took 117 min from nothing": Line(7000),
		"what is recorded took 60 s from nothing, without a.fig1, a.table8, which are not timed yet": Line(60, "a.fig1",
			"a.table8"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

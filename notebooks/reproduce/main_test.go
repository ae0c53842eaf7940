package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/notebooks/commandline"
	"gobnn/notebooks/study"
)

func TestList(t *testing.T) {
	t.Setenv("GOBNN_CACHE", t.TempDir())
	var out bytes.Buffer
	if err := dispatch(context.Background(), []string{"list"}, &out, &out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if len([]rune(strings.TrimRight(line, "\n"))) > 100 {
			t.Errorf("a line is wider than 100: %s", line)
		}
		if strings.Contains(line, "NaN") {
			t.Errorf("%s", line)
		}
	}
	words := strings.Join(strings.Fields(out.String()), " ")
	for _, s := range study.All() {
		entry := s.ID + " " + string(s.State) + ": " + strings.Join(strings.Fields(s.Title), " ")
		if !strings.Contains(words, entry) {
			t.Errorf("%q is not listed", entry)
		}
	}
	if run, not := strings.Index(words, "CAN BE RUN"), strings.Index(words, "NOT YET"); run < 0 || not >= 0 && not < run {
		t.Error("what can be run does not come first")
	}
	if _, notebook, _ := strings.Cut(words, "NOTEBOOKS"); !strings.Contains(notebook, "quickstart") {
		t.Error("the notebooks are not listed")
	}
	if err := dispatch(context.Background(), []string{"list", "x"}, &out, &out); err == nil {
		t.Error("list takes an argument")
	}
}

// TestReproduceBadInput: what is wrong is said before anything is computed.
func TestReproduceBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no study":          {[]string{}, "which study"},
		"unknown study":     {[]string{"ohsmc.table99"}, "ohsmc.table8"},
		"one that is not":   {[]string{notYet(t)}, "not yet"},
		"negative reps":     {[]string{"ohsmc.table8", "-reps", "-1"}, "-reps -1"},
		"negative epochs":   {[]string{"ohsmc.table8", "-epochs", "-2"}, "-epochs -2"},
		"hidden units":      {[]string{"pmcnet.evidence", "-hidden", "4,x"}, `"x"`},
		"hidden, elsewhere": {[]string{"ohsmc.table8", "-hidden", "4"}, "ohsmc.table8 has networks of its own"},
		"activation":        {[]string{"pmcnet.evidence", "-hidden", "4", "-activation", "gelu"}, `"gelu"`},
		"evidence, epochs":  {[]string{"pmcnet.evidence", "-epochs", "4"}, "leave out -epochs"},
		"unknown data set":  {[]string{"ohsmc.table8", "-data", "yacht,jacht"}, `"jacht"`},
		"unknown, flagged":  {[]string{"-reps", "1", "nope"}, `"nope"`},
		"unwritable result": {[]string{"ohsmc.table8", "-json", "/no/such/folder/x.json"}, "/no/such/folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOBNN_CACHE", t.TempDir())
			var out bytes.Buffer
			err := dispatch(context.Background(), append([]string{"reproduce"}, c.args...), &out, &out)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
		})
	}
	var out bytes.Buffer
	for _, args := range [][]string{nil, {"nope"}} {
		if err := dispatch(context.Background(), args, &out, &out); !errors.Is(err, commandline.ErrUsage) {
			t.Errorf("%q: error %v, want ErrUsage", args, err)
		}
	}
}

// TestReproduceInterrupted: a study that is stopped before its first repetition leaves an empty list and says how to go
// on.
func TestReproduceInterrupted(t *testing.T) {
	t.Setenv("GOBNN_CACHE", t.TempDir())
	file := filepath.Join(t.TempDir(), "cells.json")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out bytes.Buffer
	err := dispatch(ctx, []string{"reproduce", "ohsmc.table8", "-data", "yacht", "-fresh", "-json", file}, &out, &out)
	if err == nil || !strings.Contains(err.Error(), "go run ./notebooks reproduce ohsmc.table8 -data yacht -json "+file) {
		t.Errorf("error %v, want the command that goes on", err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cells := []study.Cell{{}}
	if err := json.Unmarshal(data, &cells); err != nil || len(cells) != 0 {
		t.Errorf("the file holds %s (%v), want an empty list", data, err)
	}
}

func TestNames(t *testing.T) {
	if got := strings.Join(names(" yacht, boston,,"), "|"); got != "yacht|boston" {
		t.Errorf("names %q", got)
	}
}

// What to go on with can be pasted into a shell.
func TestQuoted(t *testing.T) {
	got := quoted([]string{"gohsmc.table1", "-methods", "Random Walk,VI", `it's`})
	if want := `gohsmc.table1 -methods 'Random Walk,VI' 'it'\''s'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// notYet is a study that there is no code for.
func notYet(t *testing.T) string {
	for _, s := range study.All() {
		if s.Run == nil {
			return s.ID
		}
	}
	t.Skip("every study has code")
	return ""
}

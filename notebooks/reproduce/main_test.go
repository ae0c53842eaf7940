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

	"gobnn/notebooks/program"
	"gobnn/notebooks/study"
	"gobnn/notebooks/took"
)

// A note that an earlier study has too is named by that, and so is its end.
func TestUnsaid(t *testing.T) {
	before := []study.Experiment{
		{ID: "p.fig1"}, {ID: "p.table1", Note: "three runs; noise learnt"}, {ID: "p.table2", Note: "b"},
	}
	for note, want := range map[string]string{
		"": "", "three runs; noise learnt": "as p.table1", "drawn; three runs; noise learnt": "drawn; else as p.table1",
		"three runs": "three runs", "noise learnt": "noise learnt", "rub": "rub",
	} {
		if got := unsaid(study.Experiment{ID: "p.fig2", Note: note}, before); got != want {
			t.Errorf("%q: %q, want %q", note, got, want)
		}
	}
}

func TestList(t *testing.T) {
	t.Setenv("GOBNN_CACHE", t.TempDir())
	here := map[string]float64{"ohsmc.table8": 1260, "quickstart.ipynb": 1380} // the seconds that they took
	for name, seconds := range here {
		if err := took.Note(name, seconds, false); err != nil {
			t.Fatal(err)
		}
	}
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
		entry := s.ID + " " + string(s.State()) + ": " + strings.Join(strings.Fields(s.Title), " ")
		if !strings.Contains(words, entry) {
			t.Errorf("%q is not listed", entry)
		}
	}
	if run, not := strings.Index(words, "CAN BE RUN"), strings.Index(words, "NOT YET"); run < 0 || not >= 0 && not < run {
		t.Error("what can be run does not come first")
	}
	// The notebooks come first, a line each: what it is called, how long it takes, what it shows.
	first, _, _ := strings.Cut(out.String(), "\nCAN BE RUN")
	const line = "\n  quickstart  23 min        Quickstart: a "
	if n := strings.Count(first, "\n"); n > 10 || !strings.Contains(first, line) {
		t.Errorf("it begins with %d lines, want ten with the notebooks: %s", n, first)
	}
	_, after, _ := strings.Cut(words, " ohsmc.table8 ")
	if at := strings.Index(after, "here from nothing "+took.Text(here["ohsmc.table8"])); at < 0 || at > 500 {
		t.Errorf("ohsmc.table8 is listed without its time here: %.500s", after)
	}
}

// With a name only what is called so is listed: a study, a notebook, all of a paper.
func TestListNames(t *testing.T) {
	t.Setenv("GOBNN_CACHE", t.TempDir())
	for name, c := range map[string]struct{ has, not []string }{
		"ohsmc.table8": {[]string{"  ohsmc.table8  "}, []string{"NOTEBOOKS", "  ohsmc.table1  ", "pmcnet"}},
		"quickstart":   {[]string{"NOTEBOOKS", "  quickstart  ", "not timed yet"}, []string{"CAN BE RUN", "guided"}},
		"ohsmc":        {[]string{"NOTEBOOKS", "  ohsmc  ", "  ohsmc.table8  ", "  ohsmc.fig5  "}, []string{"pmcnet.table2"}},
	} {
		var out bytes.Buffer
		if err := dispatch(context.Background(), []string{"list", name}, &out, &out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, text := range c.has {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: no %q in %.1000s", name, text, out.String())
			}
		}
		for _, text := range c.not {
			if strings.Contains(out.String(), text) {
				t.Errorf("%s: %q in %.1000s", name, text, out.String())
			}
		}
	}
	var out bytes.Buffer
	err := dispatch(context.Background(), []string{"list", "quikstart"}, &out, &out)
	if err == nil || !strings.Contains(err.Error(), "the nearest: quickstart") || out.Len() > 0 {
		t.Errorf("an unknown name: error %v, and %.200q", err, out.String())
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
		if err := dispatch(context.Background(), args, &out, &out); !errors.Is(err, program.ErrUsage) {
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

// TestReproduceNotes: it says where figures and results lie, if they are there, and keeps how long a study took if that
// is the time from nothing or from kept results with the study's own settings.
func TestReproduceNotes(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		kept  []bool // of each repetition
		files bool   // the figure and the results are there
		noted string
	}{
		"from nothing":    {nil, []bool{false, false}, true, "nothing"},
		"from kept":       {[]string{"-format", "svg"}, []bool{true, true}, true, "kept"},
		"from some":       {nil, []bool{true, false}, true, ""},
		"fewer":           {[]string{"-reps", "1"}, []bool{false}, true, ""},
		"nothing is kept": {nil, nil, false, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOBNN_CACHE", t.TempDir())
			var figure, folder string
			runOne = func(s study.Experiment, _ context.Context, o study.Options) ([]study.Cell, error) {
				for _, kept := range c.kept {
					o.Repetition(study.Repetition{Study: s.ID, Of: len(c.kept), Done: true, Kept: kept})
				}
				var errs [2]error
				figure, errs[0] = o.FigureFile(s.ID)
				folder, errs[1] = o.ResultDir()
				if c.files {
					for _, dir := range []string{filepath.Dir(figure), folder} {
						errs[0] = errors.Join(errs[0], os.MkdirAll(dir, 0o755))
					}
					errs[1] = errors.Join(errs[1], os.WriteFile(figure, nil, 0o644))
				}
				return nil, errors.Join(errs[:]...)
			}
			t.Cleanup(func() { runOne = study.Experiment.Run })
			var out bytes.Buffer
			err := dispatch(context.Background(), append([]string{"reproduce", "ohsmc.fig1"}, c.args...), &out, &out)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), "method") && strings.Contains(out.String(), "metric") {
				t.Errorf("without numbers it prints the head of a table: %s", out.String())
			}
			for _, line := range []string{"figure: " + figure + "\n", "kept results: " + folder + "\n"} {
				if strings.Contains(out.String(), line) != c.files {
					t.Errorf("the files are there: %v; it says %q, looked for %q", c.files, out.String(), line)
				}
			}
			times, err := took.Measured()
			if err != nil {
				t.Fatal(err)
			}
			here := times["ohsmc.fig1"]
			if here.Nothing > 0 != (c.noted == "nothing") || here.Kept > 0 != (c.noted == "kept") {
				t.Errorf("noted %+v, want that it took its time from %q", here, c.noted)
			}
		})
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
		if s.State() == study.NotYet {
			return s.ID
		}
	}
	t.Skip("every study has code")
	return ""
}

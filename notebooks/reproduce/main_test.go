package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/notebooks/program"
	"gobnn/notebooks/study"
	"gobnn/notebooks/tested"
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
	var out bytes.Buffer
	tested.NoError(dispatch(context.Background(), []string{"list"}, &out, &out))
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
		entry := s.ID + " " + strings.Join(strings.Fields(s.Title), " ")
		if !strings.Contains(words, entry) {
			t.Errorf("%q is not listed", entry)
		}
	}
	// The notebooks come first, a line each: what it is called, how long it takes, what it shows.
	first, _, _ := strings.Cut(out.String(), "\nSTUDIES")
	const line = "\n  quickstart  not timed     Quickstart: a "
	if n := strings.Count(first, "\n"); n > 11 || !strings.Contains(first, line) {
		t.Errorf("it begins with %d lines, want eleven with the notebooks: %s", n, first)
	}
	_, after, _ := strings.Cut(words, " gohsmc.table1 ")
	if one, _, _ := strings.Cut(after, " gohsmc.table2 "); !strings.Contains(one, "what is recorded took ") {
		t.Errorf("gohsmc.table1 is listed without its time: %s", one)
	}
}

// With a name only what is called so is listed: a study, a notebook, all of a paper.
func TestListNames(t *testing.T) {
	t.Setenv("GOBNN_CACHE", t.TempDir())
	for name, c := range map[string]struct{ has, not []string }{
		"ohsmc.table8": {[]string{"  ohsmc.table8  "}, []string{"NOTEBOOKS", "  ohsmc.table1  ", "pmcnet"}},
		"quickstart":   {[]string{"NOTEBOOKS", "  quickstart  ", "  not timed  "}, []string{"STUDIES", "guided"}},
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
		"no study":           {[]string{}, "which study"},
		"unknown study":      {[]string{"ohsmc.table99"}, "ohsmc.table8"},
		"negative reps":      {[]string{"ohsmc.table8", "-reps", "-1"}, "-reps -1"},
		"negative epochs":    {[]string{"ohsmc.table8", "-epochs", "-2"}, "-epochs -2"},
		"evidence, epochs":   {[]string{"pmcnet.evidence", "-epochs", "4"}, "leave out -epochs"},
		"verify and reps":    {[]string{"-verify", "-reps", "2"}, "leave the flags"},
		"under, no verify":   {[]string{"ohsmc.table8", "-under", "2"}, "-verify"},
		"unknown data set":   {[]string{"ohsmc.table8", "-data", "yacht,jacht"}, `"jacht"`},
		"unknown, flagged":   {[]string{"-reps", "1", "nope"}, `"nope"`},
		"fresh on a cluster": {[]string{"ohsmc.table8", "-data", "yacht", "-on", "ray", "-fresh"}, "-on with -fresh"},
		"unknown cluster":    {[]string{"ohsmc.table8", "-data", "yacht", "-on", "sge"}, `"sge"`},
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

// A study that is stopped before its first repetition says how to go on.
func TestReproduceInterrupted(t *testing.T) {
	t.Setenv("GOBNN_CACHE", t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out bytes.Buffer
	err := dispatch(ctx, []string{"reproduce", "ohsmc.table8", "-data", "yacht", "-fresh"}, &out, &out)
	if err == nil || !strings.Contains(err.Error(), "the same command (without -fresh) goes on from there") {
		t.Errorf("error %v, want how to go on", err)
	}
}

// It says where figures and results lie, if they are there; without numbers it prints no table.
func TestReproduceSays(t *testing.T) {
	for _, files := range []bool{false, true} {
		t.Setenv("GOBNN_CACHE", t.TempDir())
		var figure, folder string
		runOne = func(s study.Experiment, _ context.Context, o study.Options) ([]study.Cell, error) {
			var errs [2]error
			figure, errs[0] = o.FigureFile(s.ID)
			folder, errs[1] = o.ResultDir()
			if files {
				for _, dir := range []string{filepath.Dir(figure), folder} {
					errs[0] = errors.Join(errs[0], os.MkdirAll(dir, 0o755))
				}
				errs[1] = errors.Join(errs[1], os.WriteFile(figure, nil, 0o644))
			}
			return nil, errors.Join(errs[:]...)
		}
		t.Cleanup(func() { runOne = study.Experiment.Run })
		var out bytes.Buffer
		tested.NoError(dispatch(context.Background(), []string{"reproduce", "ohsmc.fig1"}, &out, &out))
		if strings.Contains(out.String(), "method") && strings.Contains(out.String(), "metric") {
			t.Errorf("without numbers it prints the head of a table: %s", out.String())
		}
		for _, line := range []string{"figure: " + figure + "\n", "kept results: " + folder + "\n"} {
			if strings.Contains(out.String(), line) != files {
				t.Errorf("the files are there: %v; it says %q, looked for %q", files, out.String(), line)
			}
		}
	}
}

// What is recorded is printed whole, and nothing is computed.
func TestCells(t *testing.T) {
	var out bytes.Buffer
	tested.NoError(dispatch(context.Background(), []string{"reproduce", "ohsmc.fig1", "-cells"}, &out, &out))
	for _, want := range []string{"ohsmc.fig1: crescent", "reps", "psi less the evidence's best"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
}

func TestNames(t *testing.T) {
	if got := strings.Join(names(" yacht, boston,,"), "|"); got != "yacht|boston" {
		t.Errorf("names %q", got)
	}
}

// -all asks for every study that can be run, records, and takes no other study's settings.
func TestAll(t *testing.T) {
	asked := tested.Must(parsed([]string{"-all", "-hours", "2"}))
	can := len(study.All())
	if len(asked.studies) != can || !asked.record || asked.hours != 2 {
		t.Errorf("%d studies of %d, record %v, %v hours", len(asked.studies), can, asked.record, asked.hours)
	}
	for want, args := range map[string][]string{
		"leave IDs": {"-all", "ohsmc.fig1"}, "-reps": {"-all", "-reps", "3"}, "and -fresh out": {"-all", "-fresh"},
		"-hours -1: must be above 0": {"-all", "-hours", "-1"},
	} {
		if _, err := parsed(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

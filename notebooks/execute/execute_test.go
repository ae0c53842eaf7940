package execute

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gobnn/notebooks/tested"
)

// code is a cell with outputs, as GoNB leaves them.
func code(source string, outputs ...map[string]any) map[string]any {
	return map[string]any{"cell_type": "code", "source": strings.SplitAfter(source, "\n"), "outputs": outputs}
}

func stream(name, text string) map[string]any {
	return map[string]any{"output_type": "stream", "name": name, "text": strings.SplitAfter(text, "\n")}
}

func save(t *testing.T, path string, cells ...map[string]any) {
	t.Helper()
	data := tested.Must(json.Marshal(map[string]any{"cells": cells, "nbformat": 4, "nbformat_minor": 5,
		"metadata": map[string]any{}}))
	tested.NoError(os.WriteFile(path, data, 0o644))
}

func TestFailures(t *testing.T) {
	fault := map[string]any{"output_type": "error", "ename": "ERROR", "evalue": "exit status 2",
		"traceback": []string{"\x1b[31mboom\x1b[0m", "at line 3"}}
	bare := map[string]any{"output_type": "error", "ename": "ERROR", "evalue": "it died", "traceback": []string{}}
	for name, c := range map[string]struct {
		cell map[string]any
		says string // empty: no failure
	}{
		"fine":                    {code("%%\nfmt.Println(1)", stream("stdout", "1\n")), ""},
		"text about a failure":    {code("%%\nprint()", stream("stdout", "exit status 2\n")), ""},
		"a warning":               {code("%%\nprint()", stream("stderr", "slow backend\n")), ""},
		"a child's status":        {code("%%\nprint()", stream("stderr", "exit status 1\n")), ""},
		"error":                   {code("%%\npanic(1)", stream("stderr", "panic: 1\n"), fault), "panic: 1\nboom\nat line 3"},
		"error without traceback": {code("%%\npanic(1)", bare), "ERROR: it died"},
		"shell fails": {code("!ls /x", stream("stderr", "ls: no /x\n"), stream("stderr", "exit status 2\n")),
			"ls: no /x\nexit status 2"},
		"shell fails among code": {code("%%\nprint()\n!*go build x", stream("stderr", "exit status 1\n")), "exit status 1"},
		"shell is killed":        {code("!sleep 100", stream("stderr", "signal: killed\n")), "signal: killed"},
		"shell works":            {code("!ls", stream("stdout", "x\n")), ""},
		"unknown magic": {code("%nosuch", stream("stderr", "\"%nosuch\" unknown or not implemented yet.")),
			"%nosuch"},
		"text": {map[string]any{"cell_type": "markdown", "source": "!ls exit status 1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.ipynb")
			save(t, path, code("%%", stream("stdout", "before")), c.cell)
			failures := tested.Must(failuresOf(path))
			if c.says == "" {
				if len(failures) != 0 {
					t.Errorf("failures %+v, want none", failures)
				}
				return
			}
			if len(failures) != 1 || failures[0].Cell != 2 || !strings.Contains(failures[0].Message, c.says) {
				t.Errorf("failures %+v, want one in cell 2 that says %q", failures, c.says)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "x.ipynb")
	tested.NoError(os.WriteFile(path, []byte("{"), 0o644))
	if _, err := failuresOf(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v for a truncated notebook, want one with its name", err)
	}
}

// runner is one with a script in the place of Python: it gets the driver, SOURCE, TARGET, FOLDER and SECONDS.
func runner(t *testing.T, script string) Runner {
	t.Helper()
	python := filepath.Join(t.TempDir(), "python")
	tested.NoError(os.WriteFile(python, []byte("#!/bin/sh\n"+script), 0o755))
	r := Runner{Python: python, Env: os.Environ(), Folder: t.TempDir(), Into: t.TempDir(),
		Failed: filepath.Join(t.TempDir(), "failed"), Timeout: time.Minute}
	save(t, filepath.Join(r.Folder, "story.ipynb"), code("%%\nprint()"))
	save(t, filepath.Join(r.Into, "story.ipynb"), code("%%\nprint()", stream("stdout", "earlier\n")))
	save(t, filepath.Join(r.Into, "done.ipynb.txt"), code("%%\nprint()", stream("stdout", "1\n")))
	save(t, filepath.Join(r.Into, "bad.ipynb.txt"), code("!false", stream("stderr", "exit status 1\n")))
	return r
}

func TestRun(t *testing.T) {
	const start, end = `echo 'gobnn-event {"event": "start", "cell": 0, "cells": 1}'` + "\n",
		`echo 'gobnn-event {"event": "end", "cell": 0, "seconds": 1.5}'` + "\n"
	t.Run("works", func(t *testing.T) {
		r := runner(t, start+end+`[ "$5" = 60 ] && cp "$4/done.ipynb.txt" "$3"`)
		before := tested.Read(filepath.Join(r.Folder, "story.ipynb"))
		var outcome int
		r.Cell = func(cell, cells int, took float64) {
			if cell != 1 || cells != 1 || took != 1.5 {
				t.Errorf("told of cell %d of %d, %v s", cell, cells, took)
			}
			outcome++
		}
		tested.NoError(r.Run(context.Background(), "story"))
		if outcome != 1 {
			t.Errorf("told %d times, want once", outcome)
		}
		if got, want := tested.Read(filepath.Join(r.Into, "story.ipynb")),
			tested.Read(filepath.Join(r.Into, "done.ipynb.txt")); got != want {
			t.Errorf("the executed notebook is %s, want %s", got, want)
		}
		if got := tested.Read(filepath.Join(r.Folder, "story.ipynb")); got != before {
			t.Errorf("the notebook itself was changed to %s", got)
		}
	})
	for name, c := range map[string]struct {
		script, says string
		cell         bool
	}{
		"cell fails": {start + end +
			`cp "$4/bad.ipynb.txt" "$3"; echo 'gobnn-event {"event": "failed", "cell": 0, "error": "x"}'; exit 3`,
			"cell 1 of story.ipynb", true},
		"shell fails": {start + end + `cp "$4/bad.ipynb.txt" "$3"`, "!false", true},
		"timeout": {start +
			`cp "$2" "$3"; echo 'gobnn-event {"event": "failed", "cell": 0, "error": "timed out after 60 s"}'; exit 3`,
			"timed out after 60 s", true},
		"driver fails":       {`echo no module named nbclient; exit 1`, "no module named nbclient", false},
		"driver is half way": {`echo '{' > "$3"`, "not a notebook", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := runner(t, c.script)
			before := tested.Read(filepath.Join(r.Into, "story.ipynb"))
			err := r.Run(context.Background(), "story")
			if err == nil || errors.Is(err, errCell) != c.cell || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want one that says %q", err, c.says)
			}
			if got := tested.Read(filepath.Join(r.Into, "story.ipynb")); got != before {
				t.Errorf("the executed notebook was changed to %s", got)
			}
			if c.cell {
				tested.Read(filepath.Join(r.Failed, "story.ipynb"))
			}
		})
	}
	t.Run("stopped", func(t *testing.T) {
		r := runner(t, start+"sleep 60")
		before := tested.Read(filepath.Join(r.Into, "story.ipynb"))
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		if err := r.Run(ctx, "story"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v, want the context's", err)
		}
		if got := tested.Read(filepath.Join(r.Into, "story.ipynb")); got != before {
			t.Errorf("the executed notebook was changed to %s", got)
		}
	})
}

func TestCheck(t *testing.T) {
	folder := t.TempDir()
	save(t, filepath.Join(folder, "one.ipynb"))
	save(t, filepath.Join(folder, "two.ipynb"))
	tested.NoError(Check(folder, []string{"two", "one"}))
	for _, name := range []string{"three", "../one", ""} {
		if err := Check(folder, []string{"one", name}); err == nil || !strings.Contains(err.Error(), "one, two") {
			t.Errorf("%q: error %v, want one that names the notebooks there are", name, err)
		}
	}
}

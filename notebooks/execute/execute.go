// Package execute runs notebooks headless in the project's kernel. The executed notebook is written only if every cell
// succeeded, so that an earlier one stays the same if a cell fails or the run is stopped.
package execute

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gobnn/notebooks/program"

	"github.com/google/renameio/v2"
)

// driver is the Python program that drives the kernel.
//
//go:embed execute.py
var driver []byte

// mark begins the driver's lines that are events.
const mark = "gobnn-event "

// errCell is a notebook whose cell failed.
var errCell = errors.New("a cell failed")

// Runner executes notebooks.
type Runner struct {
	Python  string                              // the environment's Python
	Env     []string                            // the environment for Jupyter
	Folder  string                              // of the notebooks
	Into    string                              // folder for the executed notebooks, in which they run; it may be Folder
	Failed  string                              // folder for the executed version of a failed notebook
	Timeout time.Duration                       // the longest that a cell may take; 0: no limit
	Cell    func(cell, cells int, took float64) // called after each cell, counted from 1, with its seconds; nil: none
}

// Names returns the notebooks in folder, without extension, sorted.
func Names(folder string) ([]string, error) {
	names, err := fs.Glob(os.DirFS(folder), "*.ipynb")
	for i, file := range names {
		names[i] = strings.TrimSuffix(file, ".ipynb")
	}
	slices.Sort(names)
	return names, err
}

// Check is an error unless each name is a notebook in folder; it lists those that exist.
func Check(folder string, names []string) error {
	known, err := Names(folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("no notebook %q in %s; there are: %s", name, folder, strings.Join(known, ", "))
		}
	}
	return nil
}

type event struct {
	Event   string  `json:"event"`
	Cell    int     `json:"cell"`
	Cells   int     `json:"cells"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error"`
}

// Run executes the notebook called name, and leaves it in Runner.Into. An error that wraps errCell has the failed cells
// and their output.
func (r Runner) Run(ctx context.Context, name string) error {
	work, err := os.MkdirTemp("", "gobnn-run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	script, executed := filepath.Join(work, "execute.py"), filepath.Join(work, name+".ipynb")
	if err := os.WriteFile(script, driver, 0o644); err != nil {
		return err
	}
	kept := filepath.Join(r.Into, name+".ipynb")

	cells := 0
	var failed *event
	ended := program.Run(ctx, program.Command{
		Args: []string{r.Python, script, filepath.Join(r.Folder, name+".ipynb"), executed, r.Into,
			strconv.FormatFloat(r.Timeout.Seconds(), 'f', -1, 64)},
		Dir: r.Into, Env: r.Env, End: 15 * time.Second,
		Line: func(line string) {
			var e event
			if !strings.HasPrefix(line, mark) || json.Unmarshal([]byte(line[len(mark):]), &e) != nil {
				return
			}
			switch e.Event {
			case "start":
				cells = e.Cells
			case "end":
				if r.Cell != nil {
					r.Cell(e.Cell+1, cells, e.Seconds)
				}
			case "failed":
				failed = &e
			}
		},
	})
	if ctx.Err() != nil {
		return fmt.Errorf("notebook %s: stopped (%w); runs with a checkpoint are kept, and the same command goes on from "+
			"there", name, context.Cause(ctx))
	}
	if ended != nil && failed == nil {
		return fmt.Errorf("notebook %s: %w", name, ended)
	}
	failures, err := failuresOf(executed)
	if err != nil {
		return fmt.Errorf("notebook %s: %w", name, err)
	}
	if failed != nil && len(failures) == 0 { // a timeout or a dead kernel leaves no output
		failures = []failure{{Cell: failed.Cell + 1, Message: failed.Error}}
	}
	data, err := os.ReadFile(executed)
	if err != nil {
		return fmt.Errorf("notebook %s: %w", name, err)
	}
	if len(failures) > 0 {
		return r.fail(name, data, failures)
	}
	if before, err := os.ReadFile(kept); err == nil && bytes.Equal(before, data) {
		return nil
	}
	if err := renameio.WriteFile(kept, data, 0o644); err != nil {
		return fmt.Errorf("keep the executed notebook: %w", err)
	}
	return nil
}

// fail saves the failed notebook in Runner.Failed, and makes the error.
func (r Runner) fail(name string, data []byte, failures []failure) error {
	var said strings.Builder
	for _, f := range failures {
		fmt.Fprintf(&said, "\n--- cell %d of %s.ipynb ---", f.Cell, name)
		if f.Source != "" {
			fmt.Fprintf(&said, "\n%s\n--- said ---", tail(f.Source, 12))
		}
		fmt.Fprintf(&said, "\n%s", tail(f.Message, 30))
	}
	kept := filepath.Join(r.Failed, name+".ipynb")
	note := "\nwith the outputs up to the failure: " + kept
	if err := errors.Join(os.MkdirAll(r.Failed, 0o755), renameio.WriteFile(kept, data, 0o644)); err != nil {
		note = "\nwith the outputs up to the failure it could not be kept: " + err.Error()
	}
	return fmt.Errorf("notebook %s: %w%s%s", name, errCell, said.String(), note)
}

// tail is the last lines of a text.
func tail(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > count {
		lines = append([]string{"..."}, lines[len(lines)-count:]...)
	}
	return strings.Join(lines, "\n")
}

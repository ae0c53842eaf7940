package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gobnn/bayes/compute/environment"
	"gobnn/notebooks/commandline"
	"gobnn/notebooks/execute"
	"gobnn/notebooks/setup"
	"gobnn/notebooks/took"
	"gobnn/notebooks/work"
)

// runVerb executes notebooks headless, one after another, and stops at the first that fails.
func runVerb(ctx context.Context, root string, args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	s := setup.Setup{Root: root, Out: os.Stdout}
	environmentFlags(flags, &s)
	timeout := flags.Duration("timeout", time.Hour, "the longest that one cell may take (0: no limit)")
	names, err := commandline.Parse(flags, `usage: go run ./notebooks run NAME... [flags]

Executes notebooks/NAME.ipynb headless, setting up first if needed. The notebook then holds its outputs, figures
included. Where a cell fails it stays as it was, and the exit status is not 0. The backend is $GOMLX_BACKEND where
that is set, else what is installed.
`, args)
	if err != nil {
		return err
	}
	folder := filepath.Join(root, "notebooks")
	if len(names) == 0 {
		known, err := execute.Names(folder)
		if err != nil {
			return err
		}
		return fmt.Errorf("run: which notebook? There are: %s", strings.Join(known, ", "))
	}
	if *timeout < 0 {
		return fmt.Errorf("-timeout %v: must not be negative", *timeout)
	}
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, ".ipynb")
	}
	if err := execute.Check(folder, names); err != nil {
		return err
	}
	if err := work.Writable(folder); err != nil {
		return fmt.Errorf("run keeps the executed notebooks where they lie: %w\nclone the project into a folder that you "+
			"can write; `go run ./notebooks lab` runs copies of the notebooks from here", err)
	}
	cache, err := environment.CacheDir()
	if err != nil {
		return err
	}
	env, err := s.Ensure(ctx)
	if err != nil {
		return err
	}
	runner := execute.Runner{
		Python: filepath.Join(env, "bin", "python"), Env: append(s.JupyterEnviron(env), "GOBNN_HEADLESS=1"),
		Folder: folder,
		Failed: filepath.Join(cache, "failed"), Timeout: *timeout,
		Cell: func(cell, cells int, took float64) { fmt.Printf("  cell %d of %d, %.1f s\n", cell, cells, took) },
	}
	for _, name := range names {
		again, err := forewarn(os.Stdout, root, name)
		if err != nil {
			return err
		}
		fmt.Printf("gobnn: running notebooks/%s.ipynb\n", name)
		start := time.Now()
		if err := runner.Run(ctx, name); err != nil {
			return err
		}
		seconds := time.Since(start).Seconds()
		fmt.Printf("gobnn: notebooks/%s.ipynb done in %.1f s, with its figures; results are kept in %s\n", name, seconds,
			cache)
		if err := took.Note(name+".ipynb", seconds, again); err != nil {
			return err
		}
	}
	return nil
}

// forewarn says that a notebook will take an hour or more, as it did here or where its results were recorded, and
// whether it has been run here before, so that its results are kept.
func forewarn(out io.Writer, root, name string) (again bool, err error) {
	here, err := took.Measured()
	if err != nil {
		return false, err
	}
	recorded, err := took.Recorded(root)
	if err != nil {
		return false, err
	}
	estimate, err := took.Notebook(recorded, filepath.Join(root, "notebooks", name+".ipynb"))
	if err != nil {
		return false, err
	}
	times, again := here[name+".ipynb"]
	seconds := times.Nothing
	switch {
	case times.Kept > 0:
		seconds = times.Kept
	case !again:
		seconds = estimate
	}
	if seconds >= time.Hour.Seconds() {
		fmt.Fprintf(out, "gobnn: %s.ipynb may take an hour or more: %s. Ctrl-C stops it: repetitions that are done are "+
			"kept\n", name, took.Line(times, estimate))
	}
	return again, nil
}

package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gobnn/bayes/compute/environment"
	"gobnn/notebooks/execute"
	"gobnn/notebooks/program"
	"gobnn/notebooks/results"
	"gobnn/notebooks/setup"
	"gobnn/notebooks/took"
)

// runVerb executes notebooks headless, one after another, and stops at the first that fails.
func runVerb(ctx context.Context, root string, args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	s := setup.Setup{Root: root, Out: os.Stdout}
	environmentFlags(flags, &s)
	timeout := flags.Duration("timeout", time.Hour, "time limit for one cell (0: no limit)")
	save := flags.Bool("save", false, "replace the notebooks in the source tree by the executed ones")
	names, err := program.Parse(flags, `usage: go run ./notebooks run NAME... [flags]

Executes notebooks/NAME.ipynb without a browser, setting up first if needed, and saves it with its outputs and figures
as executed/NAME.ipynb in your work folder: $GOBNN_WORK, or gobnn in your home folder. If a cell fails, nothing is saved
and the exit status is not 0. The backend is $GOMLX_BACKEND if that is set, or else the best one installed.
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
	into := folder
	if *save {
		if err := writable(folder); err != nil {
			return fmt.Errorf("-save replaces the notebooks in the source tree: %w\nleave it out: the executed notebooks are "+
				"then in a folder of your own", err)
		}
	} else if into, err = executedDir(); err != nil {
		return err
	}
	cache, err := environment.CacheDir()
	if err != nil {
		return err
	}
	env, err := s.Ensure(ctx)
	if err != nil {
		return err
	}
	environ, err := s.JupyterEnviron(env)
	if err != nil {
		return err
	}
	runner := execute.Runner{
		Python: filepath.Join(env, "bin", "python"), Env: append(environ, "GOBNN_HEADLESS=1"),
		Folder: folder, Into: into,
		Failed: filepath.Join(cache, "failed"), Timeout: *timeout,
		Cell: func(cell, cells int, took float64) { fmt.Printf("  cell %d of %d, %.1f s\n", cell, cells, took) },
	}
	recorded, err := took.Recorded(results.Files)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == "own-network" {
			if err := s.EnsureExtra(ctx, "ocr"); err != nil {
				return err
			}
		}
		if err := forewarn(os.Stdout, recorded, filepath.Join(folder, name+".ipynb"), *timeout); err != nil {
			return err
		}
		fmt.Printf("gobnn: running notebooks/%s.ipynb\n", name)
		start := time.Now()
		if err := runner.Run(ctx, name); err != nil {
			return err
		}
		fmt.Printf("gobnn: done in %.1f s: with its figures it is %s; results are kept in %s\n",
			time.Since(start).Seconds(), filepath.Join(into, name+".ipynb"), cache)
	}
	return nil
}

// forewarn warns that a notebook will take an hour or more where nothing of it is kept yet: its results took as long
// when they were recorded, or some of its studies are not timed. limit is the longest time that a cell may take; 0:
// none.
func forewarn(out io.Writer, recorded took.Times, notebook string, limit time.Duration) error {
	estimate, untimed, err := recorded.Notebook(notebook)
	if err != nil {
		return err
	}
	if estimate < time.Hour.Seconds() && len(untimed) == 0 {
		return nil
	}
	fmt.Fprintf(out, "gobnn: %s may take an hour or more: %s. Ctrl-C stops it: repetitions that are done are kept\n",
		filepath.Base(notebook), cmp.Or(took.Line(estimate, untimed...), "its studies are not timed yet"))
	if limit > 0 {
		fmt.Fprintf(out, "gobnn: a cell that takes more than %v fails; -timeout 0 lifts the limit\n", limit)
	}
	return nil
}

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gobnn/bayes/compute/environment"
	"gobnn/notebooks/commandline"
	"gobnn/notebooks/execute"
	"gobnn/notebooks/setup"
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
		fmt.Printf("gobnn: running notebooks/%s.ipynb\n", name)
		start := time.Now()
		if err := runner.Run(ctx, name); err != nil {
			return err
		}
		fmt.Printf("gobnn: notebooks/%s.ipynb done in %.1f s\n", name, time.Since(start).Seconds())
	}
	return nil
}

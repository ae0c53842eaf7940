package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"gobnn/bayes/compute/environment"
	"gobnn/notebooks/program"
	"gobnn/notebooks/setup"
)

// become builds the program in a folder of notebooks, which links the samplers and XLA, and replaces this process by
// it.
func become(ctx context.Context, root, name string, args []string) error {
	cache, err := environment.CacheDir()
	if err != nil {
		return err
	}
	binary := filepath.Join(cache, "bin", name)
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return fmt.Errorf("folder for the program (set GOBNN_CACHE to one that can be written): %w", err)
	}
	slow := time.AfterFunc(4*time.Second, func() {
		fmt.Fprintln(os.Stderr, "gobnn: compiling (a minute or two the first time)")
	})
	defer slow.Stop()
	err = program.Run(ctx, program.Command{
		Args: []string{"go", "build", "-o", binary, "./notebooks/" + name}, Dir: root,
	})
	if err != nil {
		return fmt.Errorf("build the program: %w", setup.Explain(err))
	}
	slow.Stop()
	return fmt.Errorf("run the program: %w", syscall.Exec(binary, append([]string{"gobnn"}, args...), os.Environ()))
}

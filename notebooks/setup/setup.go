// Package setup makes the private environment that the notebooks run in, once: a Python venv with JupyterLab, nbclient
// and the XLA plugin from pinned and hashed requirements, GoNB, goimports and (for JupyterLab) gopls from
// pinned tool modules, the program that starts the kernel, and a warm build cache.
//
// An environment is built in a folder of its own, named by a hash of the pins; its stamp is written last, and then the
// link environment.Dir is set to it. So the environment in use is always complete, the next set-up removes the remains
// of a killed one, and a changed pin builds a new environment.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"gobnn/bayes/compute/environment"
)

// Setup has the settings of a set-up. Root and Out must be set.
type Setup struct {
	Root   string    // the project's folder
	Out    io.Writer // where progress goes
	Python string    // the Python to make the venv with; empty: the first suitable one on PATH
	Help   bool      // also what helps while typing, in JupyterLab

	lock *os.File // while it builds
}

// Ensure makes the environment unless it exists with the same pins, and returns its folder; see Ready.
func (s *Setup) Ensure(ctx context.Context) (string, error) {
	env, err := environment.Dir()
	if err != nil {
		return "", err
	}
	pins, err := pins(s.Root)
	if err != nil {
		return "", err
	}
	if !whole(env, pins) {
		fill := func(dir string) error { return s.fill(ctx, dir) }
		if err := s.install(ctx, env, pins, whole, fill); err != nil {
			return "", err
		}
	}
	if s.Help && !complete(env) {
		if err := s.addHelp(ctx, env); err != nil {
			return "", err
		}
	}
	return env, nil
}

// Ready says whether the environment is set up, with Help or without, so that Ensure would do nothing.
func Ready(root string, help bool) (bool, error) {
	env, err := environment.Dir()
	if err != nil {
		return false, err
	}
	pins, err := pins(root)
	return err == nil && whole(env, pins) && (!help || complete(env)), err
}

// install fills the folder that link is to point to, under the cache folder's lock, unless it is whole already.
func (s *Setup) install(
	ctx context.Context, link, pins string, whole func(dir, pins string) bool, fill func(dir string) error,
) error {
	if err := s.hold(ctx, filepath.Dir(link)); err != nil {
		return err
	}
	defer s.lock.Close()
	if whole(link, pins) { // another set-up made it while this one waited
		return nil
	}
	start, target := time.Now(), link+"-"+pins
	if !whole(target, pins) { // else only the link is missing
		err := emptied(target)
		if err == nil {
			err = fill(target)
		}
		if err == nil {
			err = stamp(target, pins)
		}
		if err != nil {
			return errors.Join(err, os.RemoveAll(target))
		}
	}
	if err := setLink(link, target); err != nil {
		return err
	}
	removeStale(link, target)
	fmt.Fprintf(s.Out, "gobnn: ready in %.0f s: %s in %s\n", time.Since(start).Seconds(), megabytes(sizeOf(target)),
		target)
	return nil
}

// hold makes the cache folder and takes its lock.
func (s *Setup) hold(ctx context.Context, cache string) error {
	err := os.MkdirAll(cache, 0o755)
	if err != nil {
		return unwritable(cache, err)
	}
	s.lock, err = lock(ctx, cache, func(line string) { fmt.Fprintln(s.Out, "gobnn: "+line) })
	return err
}

// fill builds the environment in an empty folder.
func (s *Setup) fill(ctx context.Context, target string) error {
	fmt.Fprintf(s.Out, "gobnn: setting up in %s: once, one or two minutes, 100 MB of Python packages to download\n",
		filepath.Dir(target))
	p := newProgress(s.Out, 5)
	defer p.fail()

	p.begin("this machine")
	m, err := s.inspect(ctx)
	if err != nil {
		return err
	}
	p.update("Python %s, %s, %s", m.pythonVersion, m.compiler, runtime.Version())
	p.done()

	for _, step := range []struct {
		name string
		do   func(context.Context, string, *progress) error
	}{
		{"Python environment", func(ctx context.Context, dir string, p *progress) error {
			return s.makeVenv(ctx, m.python, dir)
		}},
		{"Python packages", s.installPackages},
		{"Go tools", s.installTools},
		{"compiling the library for the notebooks", s.warm},
	} {
		p.begin(step.name)
		if err := step.do(ctx, target, p); err != nil && ctx.Err() != nil {
			return fmt.Errorf("set-up stopped; the next one begins anew: %w", err)
		} else if err != nil {
			return fmt.Errorf("%s: %w", step.name, Explain(err))
		}
		p.done()
	}
	return nil
}

// emptied makes a folder anew, without the remains of a killed set-up.
func emptied(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return unwritable(filepath.Dir(dir), err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return unwritable(filepath.Dir(dir), err)
	}
	return nil
}

// stamp says that the folder is whole.
func stamp(dir, pins string) error {
	if err := os.WriteFile(filepath.Join(dir, environment.Stamp), []byte(pins+"\n"), 0o644); err != nil {
		return Explain(fmt.Errorf("stamp: %w", err))
	}
	return nil
}

// setLink makes link point to target atomically.
func setLink(link, target string) error {
	next := link + ".next"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return unwritable(filepath.Dir(link), err)
	}
	if err := os.Symlink(filepath.Base(target), next); err != nil {
		return unwritable(filepath.Dir(link), err)
	}
	if err := os.Rename(next, link); err != nil {
		return fmt.Errorf("%s stands where the environment's link goes: remove it and run the command again: %w", link, err)
	}
	return nil
}

// removeStale removes the folders beside target that link may have pointed to: those of older pins, and remains of
// killed set-ups. Failures are ignored, as they only cost disk space.
func removeStale(link, target string) {
	entries, err := os.ReadDir(filepath.Dir(link))
	if err != nil {
		return
	}
	prefix := filepath.Base(link) + "-"
	for _, entry := range entries {
		path := filepath.Join(filepath.Dir(link), entry.Name())
		if strings.HasPrefix(entry.Name(), prefix) && path != target {
			_ = os.RemoveAll(path)
		}
	}
}

// sizeOf is the number of bytes of the files below dir.
func sizeOf(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}

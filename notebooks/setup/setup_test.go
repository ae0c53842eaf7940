package setup

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gobnn/notebooks/tested"
)

func TestFaults(t *testing.T) {
	remove := func(names ...string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			for _, name := range names {
				tested.NoError(os.Remove(filepath.Join(w.bin, name)))
			}
		}
	}
	set := func(name, value string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) { t.Setenv(name, value) }
	}
	for _, c := range []struct {
		name   string
		broken func(*testing.T, *world)
		want   error
		says   string
	}{
		{"no Python", remove("python3"), errPython, "install"},
		{"old Python", set("FAKE_VERSION", "3.9.18"), errPython, "3.9.18"},
		{"no venv module", set("FAKE_NOVENV", "1"), errVenv, "mend it with: "},
		{"no C compiler", remove("cc"), errCompiler, "mend it with: "},
		{"cgo off", set("CGO_ENABLED", "0"), errCompiler, "unset CGO_ENABLED"},
		{"disk fills up", set("FAKE_PIP", "ERROR: Could not install packages due to an OSError: [Errno 28] No space left "+
			"on device"), errDiskFull, "GOBNN_CACHE"},
		{"altered wheel", set("FAKE_PIP", "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."),
			errHash, "nothing of it was installed"},
		{"no network for pip", set("FAKE_PIP", strings.Repeat("Ignoring x: markers\n", 15)+
			"Failed to establish a new connection: [Errno -3] Temporary failure in name resolution\n"+
			"ERROR: No matching distribution found for anyio==4.16.0"), errNetwork, "PIP_INDEX_URL"},
		{"no network for Go", set("FAKE_INSTALL", "dial tcp: lookup x: no such host"), errNetwork, "GOPROXY"},
		{"no build for this Python", set("FAKE_PIP", "ERROR: No matching distribution found for xla-cpu-pjrt==0.0.1"),
			errPython, "-python"},
		{"cache folder cannot be", func(t *testing.T, w *world) {
			file := filepath.Join(t.TempDir(), "file")
			tested.Write(file, "")
			t.Setenv("GOBNN_CACHE", filepath.Join(file, "cache"))
		}, errReadOnly, "set GOBNN_CACHE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.broken(t, w)
			_, err := w.setup.Ensure(context.Background())
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want one that is %q and says %q", err, c.want, c.says)
			}
			if first, _, _ := strings.Cut(err.Error(), "\n"); (c.want == errNetwork || c.want == errHash) &&
				!strings.Contains(first, c.says) {
				t.Errorf("its first line is %q; want that it says %q", first, c.says)
			} else if lines := strings.Count(err.Error(), "\n"); c.want == errNetwork && lines > 3 {
				t.Errorf("it has %d lines: %v", lines, err)
			}
			if found := w.environments(t); len(found) != 0 {
				t.Errorf("left behind: %q", found)
			}
			if ready, err := Ready(w.setup.Root, false); err != nil || ready {
				t.Errorf("Ready: %v, %v after a fault", ready, err)
			}
		})
	}
}

func TestOnlyOnce(t *testing.T) {
	w := newWorld(t)
	var out bytes.Buffer
	w.setup.Out = &out
	w.mustBeWhole(t)
	if got, want := strings.Join(w.did(t), " "), "pip install:github.com/janpfeifer/gonb "+
		"install:golang.org/x/tools/cmd/goimports build link install:golang.org/x/tools/gopls"; got != want {
		t.Errorf("did %q, want %q", got, want)
	}
	for _, want := range []string{"[1/5] this machine: Python 3.12.1", "1 packages, 12 MB downloaded", "[5/5]",
		"ready in"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("progress does not say %q:\n%s", want, out.String())
		}
	}
	t.Setenv("PATH", t.TempDir()) // the second time needs no program
	out.Reset()
	w.mustBeWhole(t)
	if out.Len() > 0 {
		t.Errorf("the second set-up says %q", out.String())
	}
}

func TestOlderPythonsOnPath(t *testing.T) {
	w := newWorld(t)
	tested.NoError(os.Rename(filepath.Join(w.bin, "python3"), filepath.Join(w.bin, "python3.11")))
	tested.Write(filepath.Join(w.bin, "python3"), "#!/bin/sh\necho 3.8.10\n")
	w.mustBeWhole(t)
}

func TestAfterKill(t *testing.T) {
	w := newWorld(t)
	pins := tested.Must(pins(w.setup.Root))
	tested.Write(filepath.Join(w.cache, "env-"+pins, "half"), "half a package")
	tested.Write(filepath.Join(w.cache, "env-older", "bin", "python"), "of older pins")
	w.mustBeWhole(t)
	if _, err := os.Stat(filepath.Join(w.cache, "env", "half")); err == nil {
		t.Error("what the killed set-up left is in the environment")
	}
}

func TestInterrupt(t *testing.T) {
	w := newWorld(t)
	t.Setenv("FAKE_PIPWAIT", "60")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for {
			if text, _ := os.ReadFile(w.log); len(text) > 0 { // pip is at work
				cancel()
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	start := time.Now()
	if _, err := w.setup.Ensure(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want context.Canceled", err)
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("took %v to stop", took)
	}
	if found := w.environments(t); len(found) != 0 {
		t.Errorf("left behind: %q", found)
	}
	t.Setenv("FAKE_PIPWAIT", "")
	w.mustBeWhole(t)
}

func TestTwoAtOnce(t *testing.T) {
	w := newWorld(t)
	t.Setenv("FAKE_PIPWAIT", "0.3")
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			own := Setup{Root: w.setup.Root, Out: w.setup.Out, Help: true}
			if _, err := own.Ensure(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	w.mustBeWhole(t)
	if count := strings.Count(strings.Join(w.did(t), " "), "pip"); count != 1 {
		t.Errorf("pip ran %d times, want once", count)
	}
}

func TestChangedPins(t *testing.T) {
	w := newWorld(t)
	w.mustBeWhole(t)
	link := func() string {
		t.Helper()
		to := tested.Must(os.Readlink(filepath.Join(w.cache, "env")))
		return to
	}
	for _, name := range pinnedFiles {
		before := link()
		tested.Write(filepath.Join(w.setup.Root, "notebooks", name), "another version")
		w.mustBeWhole(t)
		if after := link(); before == after {
			t.Errorf("still %s after %s changed", after, name)
		}
	}
}

func TestLibraryThatDoesNotBuild(t *testing.T) {
	w := newWorld(t)
	var out bytes.Buffer
	w.setup.Out = &out
	t.Setenv("FAKE_BUILD", "x.go:1:1: syntax error")
	w.mustBeWhole(t)
	if !strings.Contains(out.String(), "syntax error") {
		t.Errorf("not said:\n%s", out.String())
	}
}

// Cells are linked by Go's own linker where that works, and else only without symbols.
func TestLinker(t *testing.T) {
	for fault, want := range map[string]string{"": "-s -linkmode=internal\n", "relocation target not defined": "-s\n"} {
		w := newWorld(t)
		t.Setenv("FAKE_LINK", fault)
		w.mustBeWhole(t)
		text, err := os.ReadFile(filepath.Join(w.cache, "env", "cells", "ldflags"))
		if err != nil || string(text) != want {
			t.Errorf("linking says %q: flags %q (%v), want %q", fault, text, err, want)
		}
	}
}

// A notebook that runs by itself does not wait for gopls; JupyterLab adds it to the same environment.
func TestHelp(t *testing.T) {
	w := newWorld(t)
	w.setup.Help = false
	env := tested.Must(w.setup.Ensure(context.Background()))
	if _, err := os.Stat(filepath.Join(env, "lab")); err == nil {
		t.Error("gopls is there")
	}
	w.setup.Help = true
	t.Setenv("FAKE_INSTALL", "dial tcp: lookup x: no such host")
	if _, err := w.setup.Ensure(context.Background()); !errors.Is(err, errNetwork) {
		t.Errorf("error %v, want errNetwork", err)
	}
	t.Setenv("FAKE_INSTALL", "")
	w.mustBeWhole(t)
	if got := w.did(t); strings.Count(strings.Join(got, " "), "pip") != 1 {
		t.Errorf("did %q, want one pip", got)
	}
}

package setup

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/bayes/compute/environment"
	"gobnn/notebooks/tested"
)

// The programs that set-up runs, as scripts that behave as $FAKE_<WHAT> says. They log what they do to $FAKE_LOG.
const (
	fakePython = `#!/bin/sh
case "$1 $2 $3" in
"-c import sys"*) echo "${FAKE_VERSION:-3.12.1}" ;;
"-c import venv"*) [ -z "$FAKE_NOVENV" ] || { echo "ModuleNotFoundError: No module named 'ensurepip'"; exit 1; } ;;
"-m venv "*) /bin/mkdir -p "$3/bin" && /bin/cp "$0" "$3/bin/python" ;;
"-m pip install")
	echo pip >> "$FAKE_LOG"
	case "$*" in
	*" --require-hashes --no-deps --only-binary=:all: "*) ;;
	*) echo "pip does not check what it installs: $*"; exit 9 ;;
	esac
	echo "Collecting jupyterlab==4"
	echo "  Downloading jupyterlab-4-py3-none-any.whl (12.5 MB)"
	[ -z "$FAKE_PIPWAIT" ] || /bin/sleep "$FAKE_PIPWAIT"
	[ -z "$FAKE_PIP" ] || { echo "$FAKE_PIP"; exit 1; } ;;
*) echo "unexpected: python $*"; exit 9 ;;
esac
`
	fakeGo = `#!/bin/sh
case "$1 $2" in
"env CC") echo cc ;;
"env GOCACHE") echo "$FAKE_GOCACHE" ;;
"env GOMODCACHE") echo "$FAKE_GOCACHE" ;;
"install "*)
	echo "install $2" >> "$FAKE_LOG"
	[ -z "$FAKE_INSTALL" ] || { echo "$FAKE_INSTALL"; exit 1; }
	/bin/mkdir -p "$GOBIN" && echo tool > "$GOBIN/${2##*/}" ;;
"build -o") echo tool > "$3" ;;
"build -ldflags=-s -linkmode=internal")
	echo link >> "$FAKE_LOG"
	[ -z "$FAKE_LINK" ] || { echo "$FAKE_LINK"; exit 1; }
	echo program > "$4" ;;
"build ./bayes/...") echo build >> "$FAKE_LOG"; [ -z "$FAKE_BUILD" ] || { echo "$FAKE_BUILD"; exit 1; } ;;
*) echo "unexpected: go $*"; exit 9 ;;
esac
`
	fakeCompiler = `#!/bin/sh
[ -z "$FAKE_NOHEADERS" ] || { echo "fatal error: stdlib.h: No such file or directory"; exit 1; }
`
)

// pinnedFiles are those that the pins must depend on.
var pinnedFiles = []string{"tools/go.mod", "tools/go.sum", "tools/cpuplugin/main.go", "tools/gopls/go.mod",
	"tools/gopls/go.sum", "cells/main.go", "program/goflags.go"}

// world is a machine made of fakes: a project, a cache folder and a PATH.
type world struct {
	setup Setup
	cache string
	bin   string // PATH
	log   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{cache: filepath.Join(t.TempDir(), "cache"), bin: t.TempDir(), log: filepath.Join(t.TempDir(), "log")}
	root := t.TempDir()
	tested.Write(filepath.Join(root, "go.mod"), "module gobnn\n")
	for _, name := range pinnedFiles {
		tested.Write(filepath.Join(root, "notebooks", name), "pinned "+name)
	}
	w.setup = Setup{Root: root, Out: io.Discard, Help: true}
	for name, script := range map[string]string{"python3": fakePython, "go": fakeGo, "cc": fakeCompiler} {
		tested.Write(filepath.Join(w.bin, name), script)
	}
	t.Setenv("GOBNN_CACHE", w.cache)
	t.Setenv("PATH", w.bin)
	t.Setenv("FAKE_LOG", w.log)
	t.Setenv("FAKE_GOCACHE", t.TempDir())
	t.Setenv("CGO_ENABLED", "")
	return w
}

// did is what the fakes logged.
func (w *world) did(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(w.log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(strings.ReplaceAll(string(text), "install ", "install:"))
}

// environments are the folders and links of environments in the cache folder.
func (w *world) environments(t *testing.T) []string {
	t.Helper()
	found := tested.Must(filepath.Glob(filepath.Join(w.cache, "env*")))
	return found
}

// mustBeWhole makes the environment and checks that it is whole and alone.
func (w *world) mustBeWhole(t *testing.T) {
	t.Helper()
	env := tested.Must(w.setup.Ensure(context.Background()))
	if want := filepath.Join(w.cache, "env"); env != want {
		t.Errorf("environment in %s, want %s", env, want)
	}
	for _, file := range []string{"bin/python", "bin/gonb", "bin/goimports",
		"bin/gobnn-kernel", "cells/go", "cells/ldflags", environment.Stamp, "share/jupyter/lab/settings/overrides.json",
		"etc/jupyter/jupyter_server_config.py"} {
		if _, err := os.Stat(filepath.Join(env, file)); err != nil {
			t.Error(err)
		}
	}
	if found := w.environments(t); len(found) != 2 { // the link and its folder
		t.Errorf("the cache folder has %q, want one environment and the link to it", found)
	}
	if ready, err := Ready(w.setup.Root, true); err != nil || !ready {
		t.Errorf("Ready: %v, %v", ready, err)
	}
}

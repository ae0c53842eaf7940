package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gobnn/notebooks/tested"
)

// folder is a folder of GoNB's, with a space in its path, in which the go command is the real one.
func folder(t *testing.T) string {
	t.Helper()
	goPath := tested.Must(exec.LookPath("go"))
	dir := filepath.Join(t.TempDir(), "a b")
	tested.NoError(os.Mkdir(dir, 0o755))
	t.Chdir(dir)
	t.Setenv("GONB_TMP_DIR", dir)
	t.Setenv(goVariable, goPath)
	t.Setenv("GOPROXY", "off") // no network
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	return dir
}

func TestPackageThatIsNotThere(t *testing.T) {
	folder(t)
	tested.Write("go.mod", "module x\n\ngo 1.26\n")
	tested.Write("main.go", "package main\n\nimport _ \"example.com/no/such\"\n\nfunc main() {}\n")
	var out, said bytes.Buffer
	for _, args := range [][]string{{"get"}, {"get", "-t"}} {
		if status := command(args, &out, &said); status != 0 || out.Len()+said.Len() > 0 {
			t.Errorf("go %q: status %d, says %q", args, status, said.String())
		}
	}
	status := command([]string{"build", "-o", "program"}, &out, &said)
	if status == 0 || !strings.Contains(said.String(), "!*go get example.com/no/such\n") {
		t.Errorf("build: status %d, says %q", status, said.String())
	}
	said.Reset()
	tested.Write("main.go", "package main\n\nfunc main() { return 1 }\n")
	if status := command([]string{"build", "-o", "program"}, &out, &said); status == 0 ||
		!strings.Contains(said.String(), "main.go:3") || strings.Contains(said.String(), "go get") {
		t.Errorf("another fault: status %d, says %q", status, said.String())
	}
	tested.Write("main.go", "package main\n\nfunc main() { println() }\n")
	if status := command([]string{"build", "-o", "program"}, &out, &said); status != 0 {
		t.Errorf("build: status %d, says %q", status, said.String())
	}
}

// A build that the stop button ends says so, and not what Go makes of it.
func TestStoppedBuild(t *testing.T) {
	dir := folder(t)
	tested.Write("go", "#!/bin/sh\n>begun\nsleep .5\necho 'link: signal: killed' >&2\nexit 1\n")
	t.Setenv(goVariable, filepath.Join(dir, "go"))
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
	}()
	var said bytes.Buffer
	status := command([]string{"build", "-o", "program"}, &said, &said)
	if status != interrupted || said.String() != "interrupted while the cell was compiled: run it again\n" {
		t.Errorf("status %d, says %q", status, said.String())
	}
}

func TestWanted(t *testing.T) {
	for message, want := range map[string]string{
		"main.go:3:8: no required module provides package a.b/c; to add it:\n\tgo get a.b/c": "a.b/c",
		"main.go:3:8: cannot find module providing package a.b/c: module lookup disabled":    "a.b/c",
		"no required module provides package ":                                               "",
		"main.go:3:8: undefined: x":                                                          "",
	} {
		if got := wanted(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

// As the kernel's program it gives GoNB its own go command, a user's GOFLAGS after the linker's flags, and gopls unless
// nobody types; as the go command it hands on what is not for it; as gopls it is that, at a low priority.
func TestStart(t *testing.T) {
	source, proxy := tested.Must(os.Getwd()), os.Getenv("GOPROXY")
	dir := folder(t)
	env := filepath.Join(dir, "env")
	for _, name := range []string{"bin", "cells", "lab/server"} {
		tested.NoError(os.MkdirAll(filepath.Join(env, name), 0o755))
	}
	program := filepath.Join(env, "bin", "gobnn-kernel")
	build := exec.Command("go", "build", "-o", program, "gobnn/notebooks/cells")
	build.Env = append(os.Environ(), "GOWORK=", "CGO_ENABLED=0")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tested.NoError(os.Symlink("../bin/gobnn-kernel", filepath.Join(env, "cells", "go")))
	tested.Write(filepath.Join(env, "bin", "gonb"),
		"#!/bin/sh\necho \"$1|$GOFLAGS|$PATH\"\ngo version\ngo env GOWORK\ngo get\n")
	kernel := exec.Command(program, "--kernel")
	kernel.Env = append(os.Environ(), `GOFLAGS="-ldflags=-X 'a.b=c d'" -mod=mod`)
	if out, err := kernel.CombinedOutput(); err == nil || !strings.Contains(string(out), "ldflags") {
		t.Errorf("without the file of set-up: %v, says %q", err, out)
	}
	tested.Write(filepath.Join(env, "cells", "ldflags"), "-s\n")
	for headless, lab := range map[string]bool{"": true, "1": false} {
		kernel := exec.Command(program, "--kernel")
		kernel.Env = append(os.Environ(), `GOFLAGS="-ldflags=-X 'a.b=c d'" -mod=mod`, headlessVariable+"="+headless)
		out, err := kernel.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		lines := strings.Split(string(out), "\n")
		want := `--kernel|'-ldflags=-s' "-ldflags=-X 'a.b=c d'"|` + filepath.Join(env, "cells") + ":"
		if !strings.HasPrefix(lines[0], want) {
			t.Errorf("%q, want it to begin with %q", lines[0], want)
		}
		if strings.Contains(lines[0], filepath.Join(env, "lab")+":") != lab {
			t.Errorf("headless %q: PATH %q", headless, lines[0])
		}
		if !strings.HasPrefix(lines[1], "go version go") || lines[2] != "off" {
			t.Errorf("the go command says %q", lines[1:])
		}
	}

	// gopls lets the cells go first, has a bound on its memory, and sees the project as a module that cells use: in the
	// kernel's own workspace it would check all its packages. Where that cannot be made it sees the kernel's.
	tested.NoError(os.Symlink("../bin/gobnn-kernel", filepath.Join(env, "lab", "gopls")))
	tested.Write(filepath.Join(env, "lab", "server", "gopls"),
		"#!/bin/sh\necho \"$*|$(nice)|$GOMEMLIMIT|$GOPRIVATE|\"; go list -f '{{.Dir}} {{.Module.Main}}' gobnn/bayes/run\n")
	tested.Write("go.mod", "module gonb_x\n\ngo 1.26.5\n")
	root := filepath.Dir(filepath.Dir(source))
	tested.Write(filepath.Join(env, "bin", "gonb"), "#!/bin/sh\nexec gopls -listen\n")
	started := "-listen.timeout=1m -listen|%d|700MiB|gobnn|\n%s/bayes/run false\n"
	for folder, want := range map[string]string{
		root:                      fmt.Sprintf(started, niceness, root),
		filepath.Join(dir, "no/"): "gopls sees the whole project",
	} {
		kernel := exec.Command(program, "--kernel", "-go_work="+folder)
		kernel.Env = append(os.Environ(), headlessVariable+"=", "GOWORK=", "GOMEMLIMIT=", "GOPRIVATE=",
			"GOPROXY="+proxy) // a workspace reads the go.mod of modules that nothing has needed yet
		if out, err := kernel.CombinedOutput(); err != nil && folder == root || !strings.Contains(string(out), want) {
			t.Errorf("gopls: %v, says %q, want %q", err, out, want)
		}
	}
}

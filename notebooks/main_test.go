package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gobnn/notebooks/program"
	"gobnn/notebooks/tested"
	"gobnn/notebooks/took"
)

func TestBadInput(t *testing.T) {
	t.Setenv("GOBNN_CACHE", t.TempDir())
	for name, c := range map[string]struct {
		args  []string
		usage bool
		says  string
	}{
		"no verb":          {nil, true, ""},
		"unknown verb":     {[]string{"predct"}, true, `there is no verb "predct"; did you mean predict?`},
		"setup argument":   {[]string{"setup", "now"}, true, ""},
		"unknown flag":     {[]string{"lab", "-fast"}, true, ""},
		"prefix alone":     {[]string{"setup", "-prefix", "/x"}, false, "-kernel"},
		"remove alone":     {[]string{"setup", "-remove"}, false, "-kernel"},
		"no kernel":        {[]string{"setup", "-kernel", "-remove", "-prefix", "/no/such"}, false, "/no/such"},
		"port":             {[]string{"lab", "-port", "70000"}, false, "70000"},
		"no notebook":      {[]string{"run"}, false, "which notebook"},
		"unknown notebook": {[]string{"run", "nosuch"}, false, `"nosuch"`},
		"timeout":          {[]string{"run", "nosuch", "-timeout", "-3s"}, false, "-3s"},
	} {
		t.Run(name, func(t *testing.T) {
			was := os.Stderr
			defer func() { os.Stderr = was }()
			said := filepath.Join(t.TempDir(), "said")
			var err error
			os.Stderr = tested.Must(os.Create(said))
			err = dispatch(context.Background(), c.args)
			if c.usage {
				text, fault := os.ReadFile(said)
				if !errors.Is(err, program.ErrUsage) || fault != nil || !strings.Contains(string(text), c.says) {
					t.Errorf("error %v, %v, and it says %q; want ErrUsage, and %q", err, fault, text, c.says)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
			if _, err := os.Stat(filepath.Join(os.Getenv("GOBNN_CACHE"), "setup.lock")); err == nil {
				t.Error("set-up began")
			}
		})
	}
}

// JupyterLab does not wait for gopls: set-up goes on beside it.
func TestHelpLater(t *testing.T) {
	root := t.TempDir()
	t.Setenv("GOBNN_CACHE", t.TempDir())
	self := filepath.Join(root, "self")
	tested.NoError(os.WriteFile(self, []byte("#!/bin/sh\nsleep 1\necho $1 in $PWD, priority $(nice)\n"), 0o755))
	began, said := time.Now(), ""
	if err := helpLater(self, root); err != nil || time.Since(began) > time.Second {
		t.Fatalf("after %v: %v", time.Since(began), err)
	}
	for time.Since(began) < 10*time.Second && said == "" {
		time.Sleep(50 * time.Millisecond)
		text := tested.Must(os.ReadFile(filepath.Join(os.Getenv("GOBNN_CACHE"), "gopls.log")))
		said = string(text)
	}
	if want := "setup in " + root + ", priority 10\n"; said != want {
		t.Errorf("it says %q, want %q", said, want)
	}
}

// A folder that cannot be written is said before anything is set up.
func TestFolders(t *testing.T) {
	t.Setenv("GOBNN_CACHE", t.TempDir())
	t.Setenv(workVariable, filepath.Join(t.TempDir(), "my work"))
	t.Setenv("PATH", t.TempDir()) // without a Python, a set-up that begins ends at once
	for _, c := range []struct {
		args   []string
		folder string
	}{
		{[]string{"lab"}, "/proc/no/such"},
		{[]string{"lab"}, "nosuch"}, // within the source tree
		{[]string{"run", "quickstart"}, "/proc/no/such"},
	} {
		t.Setenv(workVariable, c.folder)
		if err := dispatch(context.Background(), c.args); err == nil || !strings.Contains(err.Error(), c.folder) ||
			!strings.Contains(err.Error(), workVariable+"=") {
			t.Errorf("%v with the folder %s: error %v", c.args, c.folder, err)
		}
	}
	if _, err := os.Stat(filepath.Join(os.Getenv("GOBNN_CACHE"), "setup.lock")); err == nil {
		t.Error("set-up began")
	}
}

// The user's folder has the template and the project's notebooks, and the source tree, which may be one that can only
// be read, stays as it is. One within the source tree gets no copies.
func TestWorkFolder(t *testing.T) {
	root := filepath.Join(t.TempDir(), "my clone")
	notebooks := filepath.Join(root, "notebooks")
	tested.NoError(os.MkdirAll(notebooks, 0o755))
	tested.NoError(os.WriteFile(filepath.Join(notebooks, "quickstart.ipynb"), []byte("{}"), 0o444))
	tested.NoError(os.Chmod(notebooks, 0o555))
	own := filepath.Join(t.TempDir(), "my work")
	for folder, has := range map[string]string{own: templateName, notebooks: "quickstart.ipynb"} {
		t.Setenv(workVariable, folder)
		got, err := workFolder(root)
		if err != nil || got != folder {
			t.Errorf("%q, %v; want %q", got, err, folder)
		}
		if _, err := os.Stat(filepath.Join(folder, has)); err != nil {
			t.Error(err)
		}
	}
	copied := filepath.Join(own, "quickstart.ipynb")
	if err := os.WriteFile(copied, []byte("changed"), 0o644); err != nil {
		t.Errorf("a copy cannot be changed: %v", err)
	}
	if names, err := os.ReadDir(notebooks); err != nil || len(names) != 1 {
		t.Errorf("in the source tree: %v, %v", names, err)
	}
	if os.Geteuid() == 0 {
		return // who may write everywhere
	}
	if err := runVerb(context.Background(), root, []string{"quickstart", "-save"}); err == nil ||
		!strings.Contains(err.Error(), "leave it out") {
		t.Errorf("run -save in a read-only source tree: error %v", err)
	}
}

// TestOutside: the command must run within a clone.
func TestOutside(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := dispatch(context.Background(), []string{"list"}); err == nil ||
		!strings.Contains(err.Error(), "cd into the clone") {
		t.Errorf("error %v, want one that says where to run it", err)
	}
}

// TestKernel: the kernel's file says what the environment and the driver count on.
func TestKernel(t *testing.T) {
	text := tested.Must(os.ReadFile(filepath.Join("kernels", "gobnn", "kernel.json")))
	for _, want := range []string{`"gobnn-kernel"`, `"-go_work={resource_dir}/../../.."`, `"Go (gobnn)"`,
		`"interrupt_mode": "signal"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("kernel.json does not have %s", want)
		}
	}
}

// What takes an hour, or may since it was never timed, is said before it begins.
func TestForewarn(t *testing.T) {
	folder := t.TempDir()
	recorded := took.Times{{Study: "ohsmc.table8"}: {Seconds: 7000}, {Study: "ohsmc.table1"}: {Seconds: 60}}
	says := func(source, text string) {
		t.Helper()
		file := filepath.Join(folder, "a.ipynb")
		tested.Write(file, `{"cells": [{"cell_type": "code", "source": [`+strconv.Quote(source)+`]}]}`)
		var out strings.Builder
		err := forewarn(&out, recorded, file, time.Hour)
		if err != nil || !strings.Contains(out.String(), text) || (out.Len() > 0) != (text != "") ||
			strings.Contains(out.String(), "more than 1h0m0s fails; -timeout 0") != (text != "") {
			t.Errorf("%s: %v, said %q, want %q in it", source, err, out.String(), text)
		}
	}
	says(`2`, "")
	says(`table("ohsmc.table8")`, "117 min")
	// What nobody has timed may take hours.
	says(`table("ohsmc.table1"); figure("ohsmc.fig1")`, "took 60 s from nothing, without ohsmc.fig1")
	says(`figure("pbnn.fig1")`, "not timed yet")
}

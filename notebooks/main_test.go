package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/notebooks/commandline"
)

func TestBadInput(t *testing.T) {
	t.Setenv("GOBNN_CACHE", t.TempDir())
	for name, c := range map[string]struct {
		args  []string
		usage bool
		says  string
	}{
		"no verb":          {nil, true, ""},
		"unknown verb":     {[]string{"fly"}, true, ""},
		"setup argument":   {[]string{"setup", "now"}, true, ""},
		"unknown flag":     {[]string{"lab", "-fast"}, true, ""},
		"port":             {[]string{"lab", "-port", "70000"}, false, "70000"},
		"no notebook":      {[]string{"run"}, false, "which notebook"},
		"unknown notebook": {[]string{"run", "nosuch"}, false, `"nosuch"`},
		"timeout":          {[]string{"run", "nosuch", "-timeout", "-3s"}, false, "-3s"},
	} {
		t.Run(name, func(t *testing.T) {
			err := dispatch(context.Background(), c.args)
			if c.usage {
				if !errors.Is(err, commandline.ErrUsage) {
					t.Errorf("error %v, want ErrUsage", err)
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
	text, err := os.ReadFile(filepath.Join("kernels", "gobnn", "kernel.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"gobnn-kernel"`, `"-go_work={resource_dir}/../../.."`, `"Go (gobnn)"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("kernel.json does not have %s", want)
		}
	}
}

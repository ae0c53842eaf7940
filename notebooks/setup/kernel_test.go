package setup

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/notebooks/tested"
)

func readKernel(t *testing.T, folder string) (spec kernelSpec) {
	t.Helper()
	text := tested.Must(os.ReadFile(filepath.Join(folder, "kernel.json")))
	tested.NoError(json.Unmarshal(text, &spec))
	return spec
}

// Jupyter's data folder is where Jupyter looks for it (on Linux); a prefix is that of an installation.
func TestKernelFolder(t *testing.T) {
	t.Chdir("/")
	for _, c := range []struct{ prefix, data, xdg, want string }{
		{"", "", "", "/home/me/.local/share/jupyter/kernels/gobnn"},
		{"", "", "/xdg", "/xdg/jupyter/kernels/gobnn"},
		{"", "/data", "/xdg", "/data/kernels/gobnn"},
		{"/opt/hub", "/data", "/xdg", "/opt/hub/share/jupyter/kernels/gobnn"},
		{"hub", "", "", "/hub/share/jupyter/kernels/gobnn"},
	} {
		t.Setenv("HOME", "/home/me")
		t.Setenv("JUPYTER_DATA_DIR", c.data)
		t.Setenv("XDG_DATA_HOME", c.xdg)
		if got, err := KernelFolder(c.prefix); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

// Another Jupyter finds the kernel by absolute paths, and its programs, caches and modules where set-up has them. What
// is removed is what was written, and a kernel of somebody else's stays.
func TestWriteKernel(t *testing.T) {
	w := newWorld(t)
	folder := filepath.Join(t.TempDir(), "share", "jupyter", "kernels", "gobnn")
	if err := RemoveKernel(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a kernel: error %v", err)
	}
	for range 2 { // the second time over the first
		tested.NoError(w.setup.WriteKernel(context.Background(), "/env", folder))
	}
	spec := readKernel(t, folder)
	want := "/env/bin/gobnn-kernel --kernel {connection_file} --logtostderr -go_work=" + w.setup.Root
	if got := strings.Join(spec.Argv, " "); got != want {
		t.Errorf("it is started by %q, want %q", got, want)
	}
	for name, want := range map[string]string{"GOBNN_CACHE": w.cache, "GOCACHE": os.Getenv("FAKE_GOCACHE"),
		"GOMODCACHE": os.Getenv("FAKE_GOCACHE"), "GOWORK": "", "PATH": "/env/bin:" + w.bin + ":" + w.bin} {
		if got, ok := spec.Env[name]; !ok || got != want {
			t.Errorf("%s=%q, want %q", name, got, want)
		}
	}
	if spec.InterruptMode != "signal" || spec.Language != "go" || spec.DisplayName != "Go (gobnn)" {
		t.Errorf("%+v", spec)
	}
	tested.NoError(RemoveKernel(folder))
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder stays: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(folder)); err != nil {
		t.Error(err)
	}

	for name, text := range map[string]string{"another's": `{"argv": ["gonb"]}`, "no JSON": "x"} {
		file := filepath.Join(folder, "kernel.json")
		tested.Write(file, text)
		for what, err := range map[string]error{"written": w.setup.WriteKernel(context.Background(), "/env", folder),
			"removed": RemoveKernel(folder)} {
			if !errors.Is(err, errNotOurs) || !strings.Contains(err.Error(), file) {
				t.Errorf("%s, %s: error %v", name, what, err)
			}
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != text {
			t.Errorf("%s: it is now %q (%v)", name, after, err)
		}
	}
	tested.NoError(os.Remove(filepath.Join(folder, "kernel.json")))
	tested.NoError(w.setup.WriteKernel(context.Background(), "/env", folder))
	other := filepath.Join(folder, "logo.svg")
	tested.Write(other, "")
	if err := RemoveKernel(folder); err == nil {
		t.Error("a folder with another file is removed")
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

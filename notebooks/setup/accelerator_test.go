package setup

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gobnn/bayes/compute/accelerator"
	"gobnn/bayes/compute/environment"
	"gobnn/notebooks/tested"
)

// needsAccelerators skips where plugins for accelerators do not exist.
func needsAccelerators(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("there is no plugin for TPUs for this system")
	}
}

func TestAccelerators(t *testing.T) {
	needsAccelerators(t)
	ctx := context.Background()
	for kind := range extras {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			var out bytes.Buffer
			w.setup.Out = &out
			w.mustBeWhole(t)
			link := filepath.Join(w.cache, kind)
			tested.Write(link+"-older/half", "of older pins, or of a killed set-up")
			for range 2 {
				tested.NoError(w.setup.EnsureExtra(ctx, kind))
			}
			if count := strings.Count(strings.Join(w.did(t), " "), "pip"); count != 2 { // the environment's, and this one
				t.Errorf("pip ran %d times, want twice", count)
			}
			if !strings.Contains(out.String(), extras[kind].what+" is in "+link) {
				t.Errorf("the second set-up does not say that there was nothing to do:\n%s", out.String())
			}
			if _, err := os.Stat(filepath.Join(link, environment.Stamp)); err != nil {
				t.Error(err)
			}
			list, err := os.ReadFile(filepath.Join(link, "requirements.txt"))
			if err != nil || string(list) != extras[kind].requirements {
				t.Errorf("what pip installed is not the list for %s: %v, %.200q", kind, err, list)
			}
			if found, err := filepath.Glob(link + "*"); err != nil || len(found) != 2 {
				t.Errorf("the cache folder has %q (%v), want one folder and the link to it", found, err)
			}
			w.mustBeWhole(t) // a later set-up leaves it
			if _, err := os.Stat(filepath.Join(link, environment.Stamp)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAcceleratorFaults(t *testing.T) {
	needsAccelerators(t)
	ctx := context.Background()
	for _, c := range []struct {
		name, kind, pip string
		want            error
		says            string
	}{
		{"unknown", "rocm", "", nil, `"rocm": there are cuda, tpu, ray and ocr`},
		{"no build for this Python", "tpu", "ERROR: No matching distribution found for libtpu==0.0.42.1", errPython,
			"Python 3.11 and later"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.mustBeWhole(t)
			t.Setenv("FAKE_PIP", c.pip)
			err := w.setup.EnsureExtra(ctx, c.kind)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want one that is %v and says %q", err, c.want, c.says)
			}
			if found, _ := filepath.Glob(filepath.Join(w.cache, c.kind+"*")); len(found) > 0 {
				t.Errorf("left behind: %q", found)
			}
		})
	}
	if err := servedBy("plugin for TPUs", extras["tpu"].systems, "darwin/arm64"); !errors.Is(err, errPlatform) ||
		!strings.Contains(err.Error(), "[linux/amd64], not for darwin/arm64") {
		t.Errorf("a plugin that does not exist for a system: %v", err)
	}
}

// What set-up says at its end: the GPUs, or why it goes on on the CPU.
func TestSayGPUs(t *testing.T) {
	dir := t.TempDir()
	tested.Write(filepath.Join(dir, "jax_plugins/xla_cuda13/xla_cuda_plugin.so"), "")
	t.Setenv("CUDA_VISIBLE_DEVICES", "0")
	for smi, want := range map[string]string{
		"GPU-1, NVIDIA H200, 580.95.05, 143771, 143000\n": "GPU 0: NVIDIA H200, 140 of 140 GiB free, driver 580.95.05",
		"GPU-1, Tesla T4, 535.1.0, 15360, 15000\n":        "go on computing on the CPU: NVIDIA's driver is too old",
		"": "go on computing on the CPU: no GPU",
	} {
		var out bytes.Buffer
		s := Setup{Out: &out}
		s.sayGPUs(accelerator.Machine{SMI: func() (string, error) {
			if smi == "" {
				return "", errors.New("none")
			}
			return smi, nil
		}}, dir)
		if !strings.Contains(out.String(), want) {
			t.Errorf("nvidia-smi says %q: set-up says %q, want %q", smi, out.String(), want)
		}
	}
	var out bytes.Buffer
	(&Setup{Out: &out}).sayTPU(accelerator.Machine{Root: t.TempDir()})
	if !strings.Contains(out.String(), "go on computing on the CPU: no TPU") {
		t.Errorf("without a TPU set-up says %q", out.String())
	}
}

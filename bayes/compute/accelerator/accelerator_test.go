package accelerator

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	oneGPU    = "GPU-aaaa1111, NVIDIA H200, 580.95.05, 143771, 143000\n"
	twoGPUs   = oneGPU + "GPU-bbbb2222, NVIDIA A100-SXM4-80GB, 580.95.05, 81920, 1024\n"
	oldDriver = "GPU-aaaa1111, Tesla T4, 535.183.01, 15360, 15000\n"
)

// cuda13 is the path of a plugin as it lies in JAX's wheels.
const cuda13 = "/cache/cuda/jax_plugins/xla_cuda13/xla_cuda_plugin.so"

// tree is a machine with this answer of nvidia-smi, and visible as CUDA_VISIBLE_DEVICES; nil: it is not set.
func tree(t *testing.T, smi string, visible ...string) Machine {
	t.Helper()
	t.Setenv("CUDA_VISIBLE_DEVICES", strings.Join(visible, ","))
	if visible == nil {
		if err := os.Unsetenv("CUDA_VISIBLE_DEVICES"); err != nil {
			t.Fatal(err)
		}
	}
	return Machine{Root: t.TempDir(), SMI: func() (string, error) {
		if smi == "" {
			return "", errors.New("nvidia-smi: not found")
		}
		return smi, nil
	}}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	visible := func(names ...string) []string { return names }
	for _, c := range []struct {
		name    string
		smi     string
		visible []string
		numbers []int
		gpus    string // the names, in order
		err     error
		says    []string
	}{
		{name: "two, all", smi: twoGPUs, gpus: "NVIDIA H200|NVIDIA A100-SXM4-80GB"},
		{name: "two, one named", smi: twoGPUs, numbers: []int{1}, gpus: "NVIDIA A100-SXM4-80GB"},
		{name: "two, a third named", smi: twoGPUs, numbers: []int{2}, err: errDevice,
			says: []string{"number 2", "there are 2", "0: NVIDIA H200; 1: NVIDIA A100-SXM4-80GB"}},
		{name: "a negative number", smi: twoGPUs, numbers: []int{-1}, err: errDevice, says: []string{"number -1"}},
		{name: "the second by the variable", smi: twoGPUs, visible: visible("1"), gpus: "NVIDIA A100-SXM4-80GB"},
		{name: "turned round by the variable", smi: twoGPUs, visible: visible("1", "0"), numbers: []int{0},
			gpus: "NVIDIA A100-SXM4-80GB"},
		{name: "by UUID", smi: twoGPUs, visible: visible("GPU-bbbb"), gpus: "NVIDIA A100-SXM4-80GB"},
		{name: "none after one that does not exist", smi: twoGPUs, visible: visible("0", "7", "1"), gpus: "NVIDIA H200"},
		{name: "none left by the variable", smi: twoGPUs, visible: visible("-1"), err: errNone,
			says: []string{`CUDA_VISIBLE_DEVICES="-1"`, "unset it"}},
		{name: "none by an empty variable", smi: twoGPUs, visible: visible(""), err: errNone,
			says: []string{`CUDA_VISIBLE_DEVICES=""`, "unset it"}},
		{name: "part of a GPU", smi: twoGPUs, visible: visible("MIG-c6d4f1ef"), gpus: "MIG device MIG-c6d4f1ef"},
		{name: "two parts and a GPU", smi: twoGPUs, visible: visible("MIG-GPU-aaaa/1/0", " MIG-2", "1"),
			gpus: "MIG device MIG-GPU-aaaa/1/0|MIG device MIG-2|NVIDIA A100-SXM4-80GB"},
		{name: "part of a GPU where none is", visible: visible("MIG-c6d4f1ef"), err: errNone},
		{name: "part of a GPU, an old driver", smi: oldDriver, visible: visible("MIG-c6d4f1ef"), err: errDriver},
		{name: "asked for where none is", err: errNone, says: []string{"nvidia-smi -L", "driver", "--gpus all"}},
		{name: "an old driver", smi: oldDriver, err: errDriver,
			says: []string{"535.183.01", "CUDA 13 needs 580", "update the driver"}},
		{name: "nvidia-smi says something else", smi: "Failed to initialize NVML: Unknown Error\n",
			says: []string{"Failed to initialize NVML"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			gpus, err := tree(t, c.smi, c.visible...).Check(cuda13, c.numbers)
			if (err != nil) != (c.gpus == "") || c.err != nil && !errors.Is(err, c.err) {
				t.Fatalf("%v, %v; want %q or an error that is %v", gpus, err, c.gpus, c.err)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %q does not say %q", err, s)
				}
			}
			var names []string
			for _, gpu := range gpus {
				names = append(names, gpu.name)
			}
			if got := strings.Join(names, "|"); got != c.gpus {
				t.Errorf("GPUs %q, want %q", got, c.gpus)
			}
		})
	}
}

func TestGPU(t *testing.T) {
	gpus, err := tree(t, twoGPUs+"GPU-cccc, NVIDIA GB10, 580.1, [N/A], [N/A]\nGPU-dddd, Full, 580.1, 4096, 0\n"+
		"GPU-eeee, Half, 580.1, 4096, [N/A]\n").gpus()
	if err != nil || len(gpus) != 5 {
		t.Fatalf("%v, %v", gpus, err)
	}
	for i, want := range []string{"NVIDIA H200, 140 of 140 GiB free, driver 580.95.05",
		"NVIDIA A100-SXM4-80GB, 1 of 80 GiB free, driver 580.95.05", "NVIDIA GB10, driver 580.1",
		"Full, 0 of 4 GiB free, driver 580.1", "Half, driver 580.1"} {
		if got := gpus[i].String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if gpus[1].Memory != 80<<30 || gpus[1].Free != 1<<30 || gpus[2].Memory != 0 {
		t.Errorf("memory %v", gpus)
	}
}

// An nvidia-smi that hangs is waited for, but not forever.
func TestSilent(t *testing.T) {
	before := patience
	patience = 50 * time.Millisecond
	t.Cleanup(func() { patience = before })
	bin := t.TempDir()
	write(t, filepath.Join(bin, "nvidia-smi"), "#!/bin/sh\nexec sleep 60\n")
	if err := os.Chmod(filepath.Join(bin, "nvidia-smi"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	gpus, err := Machine{}.Check(cuda13, nil)
	if !errors.Is(err, errSilent) || !strings.Contains(err.Error(), "within 50ms: NVIDIA's driver hangs") {
		t.Errorf("%v, %v; want errSilent", gpus, err)
	}
}

// After an update of the driver no GPU works.
func TestStale(t *testing.T) {
	m := Machine{SMI: func() (string, error) {
		return "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 590.44\n",
			errors.New("exit status 18")
	}}
	gpus, err := m.Check(cuda13, nil)
	if !errors.Is(err, errStale) || !strings.Contains(err.Error(), "590.44") ||
		!strings.Contains(err.Error(), "start the machine anew") {
		t.Errorf("%v, %v; want errStale with the cure", gpus, err)
	}
}

// A TPU is one of Google's PCI devices that is neither network nor disk.
func TestTPU(t *testing.T) {
	for want, ids := range map[bool][][2]string{
		true:  {{"0x1ae0", "0x0063"}, {"0x1ae0", "0x9999"}},
		false: {{"0x1ae0", "0x0042"}, {"0x1ae0", "0x001f"}, {"0x10de", "0x0063"}},
	} {
		for _, id := range ids {
			m := Machine{Root: t.TempDir()}
			for file, text := range map[string]string{"vendor": id[0], "device": id[1]} {
				write(t, filepath.Join(m.Root, "sys", "bus", "pci", "devices", "0000:00:05.0", file), text+"\n")
			}
			if err := m.CheckTPU(); (err == nil) != want || err != nil && !errors.Is(err, errNoTPU) {
				t.Errorf("device %q: %v", id, err)
			}
		}
	}
}

// The data folder is in the wheels, or nowhere for a plugin that is not in wheels.
func TestDataFolder(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "nvidia/cu13/nvvm/libdevice/libdevice.10.bc"), "")
	plugin := filepath.Join(packages, "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so")
	for path, want := range map[string]string{plugin: filepath.Join(packages, "nvidia", "cu13"), cuda13: "",
		"/usr/lib/pjrt_c_api_cuda_plugin.so": ""} {
		if got := DataFolder(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// This machine, whatever it has: no panic, and the numbers name as many GPUs.
func TestHere(t *testing.T) {
	all, err := Machine{}.gpus()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		one, err := Machine{}.Check("/no/such/pjrt_c_api_cuda_plugin.so", []int{i})
		if err != nil || len(one) != 1 || one[0].uuid != all[i].uuid {
			t.Errorf("%d: %v, %v; want %v", i, one, err, all[i])
		}
	}
}

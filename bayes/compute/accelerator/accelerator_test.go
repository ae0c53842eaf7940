package accelerator

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	oneGPU     = "GPU-aaaa1111, NVIDIA H200, 580.95.05, 143771, 143000\n"
	twoGPUs    = oneGPU + "GPU-bbbb2222, NVIDIA A100-SXM4-80GB, 580.95.05, 81920, 1024\n"
	oldDriver  = "GPU-aaaa1111, Tesla T4, 535.183.01, 15360, 15000\n"
	version    = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:11:16 UTC 2025\nGCC: 12\n"
	openModule = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.54.03  Release Build  (x@y)\n"
)

// tree is a machine made of files, with set-up's wheels for CUDA 13 in packages.
func tree(t *testing.T, smi string, env map[string]string) (m Machine, packages string) {
	t.Helper()
	root := t.TempDir()
	packages = filepath.Join(root, "cache", "cuda")
	for _, file := range []string{
		"jax_plugins/xla_cuda13/xla_cuda_plugin.so", "nvidia/cu13/lib/libcublas.so.13", "nvidia/cudnn/lib/libcudnn.so.9",
		"nvidia/cu13/nvvm/libdevice/libdevice.10.bc", "jax_cuda13_pjrt-0.10.2.dist-info/METADATA",
		"nvidia_cudnn_cu13-9.28.1.4.dist-info/METADATA",
	} {
		write(t, filepath.Join(packages, file), "")
	}
	write(t, filepath.Join(packages, "requirements.txt"), "# pinned\njax-cuda13-pjrt==0.10.2 \\\n    --hash=sha256:00\n"+
		"nvidia-cudnn-cu13==9.28.1.4 \\\n    --hash=sha256:00\n")
	lookup := func(name string) (string, bool) {
		value, isSet := env[name]
		return value, isSet
	}
	return Machine{Root: root, LookupEnv: lookup, SMI: func() (string, error) {
		if smi == "" {
			return "", errors.New("nvidia-smi: not found")
		}
		return smi, nil
	}}, packages
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
	remove := func(names ...string) func(*testing.T, Machine, string) {
		return func(t *testing.T, _ Machine, packages string) {
			for _, name := range names {
				if err := os.RemoveAll(filepath.Join(packages, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	file := func(name, text string) func(*testing.T, Machine, string) {
		return func(t *testing.T, m Machine, _ string) { write(t, filepath.Join(m.Root, name), text) }
	}
	visible := func(value string) map[string]string { return map[string]string{"CUDA_VISIBLE_DEVICES": value} }
	fastest := func(more map[string]string) map[string]string {
		env := map[string]string{"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}
		maps.Copy(env, more)
		return env
	}
	const unknown = "a GPU by CUDA_DEVICE_ORDER=FASTEST_FIRST"
	for _, c := range []struct {
		name    string
		smi     string
		env     map[string]string
		numbers []int
		change  func(t *testing.T, m Machine, packages string)
		gpus    string // the names' first letters, in order
		err     error
		says    []string
	}{
		{name: "two, all", smi: twoGPUs, gpus: "NVIDIA H200|NVIDIA A100-SXM4-80GB"},
		{name: "two, one named", smi: twoGPUs, numbers: []int{1}, gpus: "NVIDIA A100-SXM4-80GB"},
		{name: "two, a third named", smi: twoGPUs, numbers: []int{2}, err: errDevice,
			says: []string{"number 2", "there are 2", "0: NVIDIA H200; 1: NVIDIA A100-SXM4-80GB"}},
		{name: "a negative number", smi: twoGPUs, numbers: []int{-1}, err: errDevice, says: []string{"number -1"}},
		{name: "the second by the variable", smi: twoGPUs, env: visible("1"), gpus: "NVIDIA A100-SXM4-80GB"},
		{name: "turned round by the variable", smi: twoGPUs, env: visible("1,0"), numbers: []int{0},
			gpus: "NVIDIA A100-SXM4-80GB"},
		{name: "by UUID", smi: twoGPUs, env: visible("GPU-bbbb"), gpus: "NVIDIA A100-SXM4-80GB"},
		{name: "none after one that does not exist", smi: twoGPUs, env: visible("0,7,1"), gpus: "NVIDIA H200"},
		{name: "none left by the variable", smi: twoGPUs, env: visible("-1"), err: errNone,
			says: []string{`CUDA_VISIBLE_DEVICES="-1"`, "unset it"}},
		{name: "none by an empty variable", smi: twoGPUs, env: visible(""), err: errNone,
			says: []string{`CUDA_VISIBLE_DEVICES=""`, "unset it"}},
		{name: "part of a GPU", smi: twoGPUs, env: visible("MIG-c6d4f1ef"), gpus: "MIG device MIG-c6d4f1ef"},
		{name: "two parts and a GPU", smi: twoGPUs, env: visible("MIG-GPU-aaaa/1/0, MIG-2,1"),
			gpus: "MIG device MIG-GPU-aaaa/1/0|MIG device MIG-2|NVIDIA A100-SXM4-80GB"},
		{name: "part of a GPU where none is", env: visible("MIG-c6d4f1ef"), err: errNone},
		{name: "part of a GPU, an old driver", smi: oldDriver, env: visible("MIG-c6d4f1ef"), err: errDriver},
		{name: "fastest first", smi: twoGPUs, env: fastest(nil), numbers: []int{1}, gpus: unknown},
		{name: "fastest first by the variable", smi: twoGPUs, env: fastest(visible("1,GPU-bbbb")),
			gpus: unknown + "|NVIDIA A100-SXM4-80GB"},
		{name: "fastest first, too many", smi: twoGPUs, env: fastest(nil), numbers: []int{2}, err: errDevice},
		{name: "fastest first of one", smi: oneGPU, env: fastest(nil), gpus: "NVIDIA H200"},
		{name: "in nvidia-smi's order", smi: twoGPUs, env: map[string]string{"CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
			numbers: []int{1}, gpus: "NVIDIA A100-SXM4-80GB"},
		{name: "asked for where none is", err: errNone, says: []string{"nvidia-smi -L", "driver", "--gpus all"}},
		{name: "a driver without a GPU", change: file("proc/driver/nvidia/version", version), err: errNone},
		{name: "no nvidia-smi", gpus: "NVIDIA L4", change: func(t *testing.T, m Machine, packages string) {
			file("proc/driver/nvidia/version", version)(t, m, packages)
			file("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA L4\nGPU uuid: \t G\n")(t, m, packages)
		}},
		{name: "no nvidia-smi, an old driver", err: errDriver, says: []string{"535.54.03"},
			change: func(t *testing.T, m Machine, packages string) {
				file("proc/driver/nvidia/version", openModule)(t, m, packages)
				file("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: NVIDIA L4\n")(t, m, packages)
			}},
		{name: "an old driver", smi: oldDriver, err: errDriver,
			says: []string{"535.183.01", "CUDA 13 needs 580", "update the driver"}},
		{name: "nvidia-smi says something else", smi: "Failed to initialize NVML: Unknown Error\n",
			says: []string{"Failed to initialize NVML"}},
		{name: "no libraries", smi: twoGPUs, change: remove("nvidia"), err: errWheels,
			says: []string{"CUDA 13", "libcublas.so.13 is missing", "beside it: none", setupCommand}},
		{name: "libraries of CUDA 12", smi: twoGPUs, err: errWheels, says: []string{"those of CUDA 12"},
			change: func(t *testing.T, m Machine, packages string) {
				remove("nvidia/cu13")(t, m, packages)
				write(t, filepath.Join(packages, "nvidia/cublas/lib/libcublas.so.12"), "")
			}},
		{name: "libraries of CUDA's own installer", smi: twoGPUs, gpus: "NVIDIA H200|NVIDIA A100-SXM4-80GB",
			change: func(t *testing.T, m Machine, packages string) {
				remove("nvidia/cu13")(t, m, packages)
				file("usr/local/cuda-13.0/lib64/libcublas.so.13", "")(t, m, packages)
			}},
		{name: "a wheel of another version", smi: twoGPUs, err: errWheels,
			says: []string{"nvidia-cudnn-cu13", "is 9.1.0", "set-up installs 9.28.1.4", setupCommand},
			change: func(t *testing.T, m Machine, packages string) {
				remove("nvidia_cudnn_cu13-9.28.1.4.dist-info")(t, m, packages)
				write(t, filepath.Join(packages, "nvidia_cudnn_cu13-9.1.0.dist-info", "METADATA"), "")
			}},
		{name: "a plugin of another version than its wheels", smi: twoGPUs, err: errWheels,
			says: []string{"jax-cuda13-pjrt", "is 0.9.0", "set-up installs 0.10.2", setupCommand},
			change: func(t *testing.T, m Machine, packages string) {
				remove("jax_cuda13_pjrt-0.10.2.dist-info")(t, m, packages)
				write(t, filepath.Join(packages, "jax_cuda13_pjrt-0.9.0.dist-info", "METADATA"), "")
			}},
		{name: "a plugin without its wheel's record", smi: twoGPUs, err: errWheels,
			says: []string{"jax-cuda13-pjrt", "is missing"}, change: remove("jax_cuda13_pjrt-0.10.2.dist-info")},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, packages := tree(t, c.smi, c.env)
			if c.change != nil {
				c.change(t, m, packages)
			}
			gpus, err := m.Check(filepath.Join(packages, "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so"), c.numbers)
			if (err != nil) != (c.gpus == "") || c.err != nil && !errors.Is(err, c.err) {
				t.Fatalf("%v, %v; want %q or an error that is %v", gpus, err, c.gpus, c.err)
			}
			for _, kind := range []error{errNone, errDevice, errDriver, errWheels, ErrSilent} {
				if errors.Is(err, kind) != (kind == c.err) {
					t.Errorf("errors.Is(%v, %v) is %v", err, kind, kind != c.err)
				}
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
	m, _ := tree(t, twoGPUs+"GPU-cccc, NVIDIA GB10, 580.1, [N/A], [N/A]\nGPU-dddd, Full, 580.1, 4096, 0\n"+
		"GPU-eeee, Half, 580.1, 4096, [N/A]\n", nil)
	gpus, err := m.gpus()
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

// A GPU that is named by its UUID is known whatever CUDA's order; one that is named by a number has no memory then.
func TestUnknownMemory(t *testing.T) {
	for visible, want := range map[string]int64{"GPU-bbbb": 80 << 30, "1": 0, "MIG-1": 0} {
		m, _ := tree(t, twoGPUs, map[string]string{"CUDA_DEVICE_ORDER": "FASTEST_FIRST", "CUDA_VISIBLE_DEVICES": visible})
		gpus, err := m.gpus()
		if err != nil || len(gpus) != 1 || gpus[0].Memory != want || gpus[0].driver != "580.95.05" {
			t.Errorf("%s: %v, %v; want memory %d", visible, gpus, err, want)
		}
	}
}

// An nvidia-smi that hangs is waited for, but not forever: one in a driver that hangs, and a process.
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
	end := make(chan bool)
	t.Cleanup(func() { close(end) })
	for name, smi := range map[string]func() (string, error){
		"driver":  func() (string, error) { <-end; return "", nil },
		"process": nil,
	} {
		t.Run(name, func(t *testing.T) {
			m, packages := tree(t, "", nil)
			m.SMI = smi
			start := time.Now()
			gpus, err := m.Check(filepath.Join(packages, "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so"), nil)
			if !errors.Is(err, ErrSilent) || !strings.Contains(err.Error(), "within 50ms: NVIDIA's driver hangs") {
				t.Errorf("%v, %v; want ErrSilent", gpus, err)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A driver that was updated while it ran still has its files in /proc, but no GPU works.
func TestStale(t *testing.T) {
	m, packages := tree(t, "", nil)
	write(t, filepath.Join(m.Root, "proc/driver/nvidia/version"), version)
	write(t, filepath.Join(m.Root, "proc/driver/nvidia/gpus/0000:01:00.0/information"), "Model: NVIDIA L4\n")
	m.SMI = func() (string, error) {
		return "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 590.44\n",
			errors.New("exit status 18")
	}
	gpus, err := m.Check(filepath.Join(packages, "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so"), nil)
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
	_, packages := tree(t, twoGPUs, nil)
	plugin := filepath.Join(packages, "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so")
	if got, want := DataFolder(plugin), filepath.Join(packages, "nvidia", "cu13"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := os.RemoveAll(filepath.Join(packages, "nvidia", "cu13", "nvvm")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{plugin, "/usr/lib/pjrt_c_api_cuda_plugin.so"} {
		if got := DataFolder(path); got != "" {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// This machine, whatever it has: no panic, and CUDA's numbers name as many GPUs.
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

// Package accelerator says which NVIDIA GPUs a machine has, or whether it has a TPU, and whether a PJRT plugin of XLA's
// can work there: before the plugin is loaded, which would name neither the cause nor the cure, or, for TPUs, ask the
// network for minutes. It reads files and asks nvidia-smi; it links neither GoMLX nor XLA, so that set-up can use it
// too.
package accelerator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The faults that Check and CheckTPU name. Each message has the cure.
var (
	errNone   = errors.New("no GPU")
	errNoTPU  = errors.New("no TPU")
	errDevice = errors.New("no such GPU")
	errDriver = errors.New("NVIDIA's driver is too old")
	errStale  = errors.New("another version of NVIDIA's driver is running than is installed")
	errSilent = errors.New("nvidia-smi does not answer")
)

// Machine is where GPUs are looked for.
type Machine struct {
	Root string                 // of the file system; empty: "/"
	SMI  func() (string, error) // nvidia-smi's answer to smiQuery; nil: it is run
}

// GPU is one NVIDIA GPU.
type GPU struct {
	uuid   string
	name   string // such as NVIDIA H200
	driver string // its version, such as 580.95.05
	Memory int64  // bytes; 0: unknown
	Free   int64  // bytes of Memory that other processes leave, 0 if it is full; unknown where Memory is
}

// String describes the GPU.
func (g GPU) String() string {
	text := g.name
	if g.Memory > 0 {
		text += fmt.Sprintf(", %.0f of %.0f GiB free", float64(g.Free)/(1<<30), float64(g.Memory)/(1<<30))
	}
	return text + ", driver " + g.driver
}

const smiQuery = "--query-gpu=uuid,name,driver_version,memory.total,memory.free"

// patience is the longest wait for nvidia-smi. On a machine with many GPUs it takes seconds.
var patience = 10 * time.Second

// gpus returns the machine's GPUs in the order of their PCI buses, which the engine has CUDA number them by, without
// the ones that CUDA_VISIBLE_DEVICES hides. It asks nvidia-smi: where there is none, there are no GPUs. The error is
// errSilent where it hangs, as CUDA would, and errStale after an update of the driver.
func (m Machine) gpus() ([]GPU, error) {
	smi := m.SMI
	if smi == nil {
		smi = ask
	}
	text, err := smi()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%w within %v: NVIDIA's driver hangs; if nvidia-smi hangs by itself too, start the machine "+
			"anew", errSilent, patience)
	case err != nil && strings.Contains(text, "version mismatch"):
		return nil, fmt.Errorf("%w (nvidia-smi: %q): start the machine anew", errStale, strings.TrimSpace(text))
	case err != nil:
		return nil, nil
	}
	gpus, err := parse(text)
	if visible, isSet := os.LookupEnv("CUDA_VISIBLE_DEVICES"); isSet {
		gpus = choose(gpus, visible)
	}
	return gpus, err
}

// ask runs nvidia-smi.
func ask() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nvidia-smi", smiQuery, "--format=csv,noheader,nounits").Output()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(out), err
}

// parse reads nvidia-smi's answer, a line for each GPU. Memory that it does not tell ("[N/A]", on GPUs that share the
// machine's) is unknown.
func parse(text string) ([]GPU, error) {
	var gpus []GPU
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		fields := strings.Split(line, ", ")
		if len(fields) != 5 {
			return nil, fmt.Errorf("nvidia-smi says %q where five values were asked for: does it work by itself?", line)
		}
		gpu := GPU{uuid: fields[0], name: fields[1], driver: fields[2]}
		total, err := strconv.ParseInt(fields[3], 10, 64)
		free, freeErr := strconv.ParseInt(fields[4], 10, 64)
		if err == nil && freeErr == nil {
			gpu.Memory, gpu.Free = total<<20, free<<20
		}
		gpus = append(gpus, gpu)
	}
	return gpus, nil
}

// choose returns the GPUs that CUDA_VISIBLE_DEVICES names, by their number or by the beginning of their UUID. As CUDA
// does, it stops at the first that does not exist; if the variable is set and empty there is none. Parts of GPUs (MIG)
// have their own UUIDs, which nvidia-smi's list does not have, so only their driver is known.
func choose(gpus []GPU, names string) []GPU {
	var chosen []GPU
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if strings.HasPrefix(name, "MIG-") && len(gpus) > 0 {
			chosen = append(chosen, GPU{name: "MIG device " + name, driver: gpus[0].driver})
			continue
		}
		at, err := strconv.Atoi(name)
		if err != nil {
			at = slices.IndexFunc(gpus, func(g GPU) bool { return name != "" && strings.HasPrefix(g.uuid, name) })
		}
		if at < 0 || at >= len(gpus) {
			break
		}
		chosen = append(chosen, gpus[at])
	}
	return chosen
}

// oldest is the first driver that works with a version of CUDA.
var oldest = map[string]int{"12": 525, "13": 580}

var cudaPlugin = regexp.MustCompile(`^(.*)/jax_plugins/xla_cuda(\d+)/xla_cuda_plugin\.so$`)

// IsCUDA says by its name whether a plugin is one for NVIDIA's GPUs.
func IsCUDA(plugin string) bool {
	return strings.Contains(strings.ToLower(filepath.Base(plugin)), "cuda")
}

// Check says whether a plugin for CUDA can work on the GPUs of these numbers, all if there are none, and returns these
// GPUs. The error names the cure. The version of CUDA, of which the driver must be, is known of a plugin that lies as
// in JAX's wheels.
func (m Machine) Check(plugin string, numbers []int) ([]GPU, error) {
	gpus, err := m.gpus()
	if err != nil {
		return nil, err
	}
	if len(gpus) == 0 {
		if all, isSet := os.LookupEnv("CUDA_VISIBLE_DEVICES"); isSet {
			return nil, fmt.Errorf("%w that CUDA_VISIBLE_DEVICES=%q leaves: unset it, or name a GPU that `nvidia-smi -L` lists",
				errNone, all)
		}
		return nil, fmt.Errorf("%w is visible here: `nvidia-smi -L` must list one (without it, install NVIDIA's driver; in "+
			"a container, start it with --gpus all, and with utility in NVIDIA_DRIVER_CAPABILITIES)", errNone)
	}
	if len(numbers) > 0 {
		var chosen []GPU
		for _, n := range numbers {
			if n < 0 || n >= len(gpus) {
				return nil, fmt.Errorf("%w: number %d is asked for, there are %d, counted from 0: %s", errDevice, n, len(gpus),
					list(gpus))
			}
			chosen = append(chosen, gpus[n])
		}
		gpus = chosen
	}
	if match := cudaPlugin.FindStringSubmatch(plugin); match != nil {
		version, least := match[2], oldest[match[2]]
		major, _, _ := strings.Cut(gpus[0].driver, ".")
		if have, err := strconv.Atoi(major); err == nil && have < least {
			return nil, fmt.Errorf("%w: it is %s, and CUDA %s needs %d or later: update the driver", errDriver,
				gpus[0].driver, version, least)
		}
	}
	return gpus, nil
}

// IsTPU says by its name whether a plugin is one for Google's TPUs.
func IsTPU(plugin string) bool {
	return strings.Contains(strings.ToLower(filepath.Base(plugin)), "tpu")
}

// Google's PCI devices are its TPUs, and in its virtual machines the network and the disks.
const (
	googleVendor  = "0x1ae0"
	googleNetwork = "0x0042"
	googleDisk    = "0x001f"
)

// CheckTPU is an error unless the machine has a TPU.
func (m Machine) CheckTPU() error {
	devices, _ := filepath.Glob(filepath.Join("/", m.Root, "sys", "bus", "pci", "devices", "*")) // a constant pattern
	for _, device := range devices {
		vendor, err := os.ReadFile(filepath.Join(device, "vendor"))
		if err != nil || strings.TrimSpace(string(vendor)) != googleVendor {
			continue
		}
		kind, err := os.ReadFile(filepath.Join(device, "device"))
		if name := strings.TrimSpace(string(kind)); err == nil && name != googleNetwork && name != googleDisk {
			return nil
		}
	}
	return fmt.Errorf("%w is attached here: in a container, start it with --privileged on a TPU's host", errNoTPU)
}

func list(gpus []GPU) string {
	var texts []string
	for i, g := range gpus {
		texts = append(texts, fmt.Sprintf("%d: %s", i, g.name))
	}
	return strings.Join(texts, "; ")
}

// DataFolder is the folder in which XLA finds ptxas and libdevice, which it compiles with, in a plugin's wheels; empty:
// there is none, and XLA looks where CUDA's own installer puts them.
func DataFolder(plugin string) string {
	match := cudaPlugin.FindStringSubmatch(plugin)
	if match == nil {
		return ""
	}
	for _, folder := range []string{"nvidia/cu" + match[2], "nvidia/cuda_nvcc"} {
		folder = filepath.Join(match[1], folder)
		if _, err := os.Stat(filepath.Join(folder, "nvvm", "libdevice")); err == nil {
			return folder
		}
	}
	return ""
}

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

// ErrSilent is a driver that hangs.
var ErrSilent = errors.New("nvidia-smi does not answer")

// The other faults that Check and CheckTPU name. Each message has the cure.
var (
	errNone   = errors.New("no GPU")
	errNoTPU  = errors.New("no TPU")
	errDevice = errors.New("no such GPU")
	errDriver = errors.New("NVIDIA's driver is too old")
	errWheels = errors.New("the plugin and its libraries do not fit together")
	errStale  = errors.New("another version of NVIDIA's driver is running than is installed")
)

// setupCommand installs the plugin for CUDA.
const setupCommand = "go run ./notebooks setup -cuda"

// Machine is where GPUs are looked for.
type Machine struct {
	Root      string                                       // of the file system; empty: "/"
	SMI       func() (string, error)                       // nvidia-smi's answer to smiQuery; nil: it is run
	LookupEnv func(name string) (value string, isSet bool) // nil: os.LookupEnv
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

// gpus returns the machine's GPUs in the order in which CUDA numbers them, without the ones that CUDA_VISIBLE_DEVICES
// hides. It asks nvidia-smi. Where this is missing, as in some containers, the driver's files have all but the memory.
// The error is ErrSilent where nvidia-smi hangs, as CUDA would, and errStale after an update of the driver.
func (m Machine) gpus() ([]GPU, error) {
	gpus := m.driverFiles()
	text, err := m.ask()
	if errors.Is(err, ErrSilent) {
		return nil, err
	}
	if err != nil && strings.Contains(text, "version mismatch") {
		return nil, fmt.Errorf("%w (nvidia-smi: %q): start the machine anew", errStale, strings.TrimSpace(text))
	}
	if err == nil {
		if gpus, err = parse(text); err != nil {
			return nil, err
		}
	}
	numbered := m.numbered(gpus)
	if visible, isSet := m.lookup("CUDA_VISIBLE_DEVICES"); isSet {
		return choose(gpus, numbered, visible), nil
	}
	return numbered, nil
}

// ask is nvidia-smi's answer to smiQuery, or an ErrSilent after some patience. A process that waits for a driver that
// hangs cannot be killed: it is left behind.
func (m Machine) ask() (string, error) {
	smi, limit := m.SMI, patience
	if smi == nil {
		smi = func() (string, error) {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			out, err := exec.CommandContext(ctx, "nvidia-smi", smiQuery, "--format=csv,noheader,nounits").Output()
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return string(out), err
		}
	}
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := smi()
		answers <- answer{text, err}
	}()
	select {
	case a := <-answers:
		if !errors.Is(a.err, context.DeadlineExceeded) {
			return a.text, a.err
		}
	case <-time.After(limit):
	}
	return "", fmt.Errorf("%w within %v: NVIDIA's driver hangs; if nvidia-smi hangs by itself too, start the machine anew",
		ErrSilent, limit)
}

func (m Machine) lookup(name string) (value string, isSet bool) {
	if m.LookupEnv != nil {
		return m.LookupEnv(name)
	}
	return os.LookupEnv(name)
}

func (m Machine) getenv(name string) string {
	value, _ := m.lookup(name)
	return value
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

var driverVersion = regexp.MustCompile(`Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s`)

// driverFiles returns the GPUs in the driver's files in /proc.
func (m Machine) driverFiles() []GPU {
	folder := filepath.Join("/", m.Root, "proc", "driver", "nvidia")
	text, err := os.ReadFile(filepath.Join(folder, "version"))
	if err != nil {
		return nil
	}
	var driver string
	if match := driverVersion.FindSubmatch(text); match != nil {
		driver = string(match[1])
	}
	files, _ := filepath.Glob(filepath.Join(folder, "gpus", "*", "information")) // a constant pattern: no error
	slices.Sort(files)
	var gpus []GPU
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		gpu := GPU{driver: driver}
		for line := range strings.Lines(string(text)) {
			switch name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) {
			case "Model":
				gpu.name = strings.TrimSpace(value)
			case "GPU UUID":
				gpu.uuid = strings.TrimSpace(value)
			}
		}
		gpus = append(gpus, gpu)
	}
	return gpus
}

// numbered returns the GPUs by CUDA's numbers. These are nvidia-smi's where CUDA_DEVICE_ORDER is PCI_BUS_ID; the engine
// sets it so where it is not set. With any other value CUDA sorts the GPUs by its own measure of speed. The number of
// each of several GPUs is then unknown, and so are the name and memory for a number.
func (m Machine) numbered(gpus []GPU) []GPU {
	order := m.getenv("CUDA_DEVICE_ORDER")
	if order == "" || order == "PCI_BUS_ID" || len(gpus) < 2 {
		return gpus
	}
	unknown := make([]GPU, len(gpus))
	for i, gpu := range gpus {
		unknown[i] = GPU{name: "a GPU by CUDA_DEVICE_ORDER=" + order, driver: gpu.driver}
	}
	return unknown
}

// choose returns the GPUs that CUDA_VISIBLE_DEVICES names, by CUDA's number or by the beginning of their UUID. As CUDA
// does, it stops at the first that does not exist; if the variable is set and empty there is none. Parts of GPUs (MIG)
// have their own UUIDs, which nvidia-smi's list does not have, so only their driver is known.
func choose(gpus, numbered []GPU, names string) []GPU {
	var chosen []GPU
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if strings.HasPrefix(name, "MIG-") && len(gpus) > 0 {
			chosen = append(chosen, GPU{uuid: name, name: "MIG device " + name, driver: gpus[0].driver})
			continue
		}
		from := numbered
		at, err := strconv.Atoi(name)
		if err != nil {
			from = gpus
			at = slices.IndexFunc(gpus, func(g GPU) bool { return name != "" && strings.HasPrefix(g.uuid, name) })
		}
		if at < 0 || at >= len(from) {
			break
		}
		chosen = append(chosen, from[at])
	}
	return chosen
}

// oldest is the first driver that works with a version of CUDA.
var oldest = map[string]int{"12": 525, "13": 580}

// needed lists the libraries that identify a plugin's wheels, relative to site-packages.
var needed = map[string][]string{
	"12": {"nvidia/cublas/lib/libcublas.so.12", "nvidia/cudnn/lib/libcudnn.so.9"},
	"13": {"nvidia/cu13/lib/libcublas.so.13", "nvidia/cudnn/lib/libcudnn.so.9"},
}

var cudaPlugin = regexp.MustCompile(`^(.*)/jax_plugins/xla_cuda(\d+)/xla_cuda_plugin\.so$`)

// IsCUDA says by its name whether a plugin is one for NVIDIA's GPUs.
func IsCUDA(plugin string) bool {
	return strings.Contains(strings.ToLower(filepath.Base(plugin)), "cuda")
}

// Check says whether a plugin for CUDA can work on the GPUs of these numbers, all if there are none, and returns these
// GPUs. The error names the cure; it wraps ErrSilent where the driver hangs. The files of a plugin that does
// not lie as in JAX's wheels are not checked.
func (m Machine) Check(plugin string, numbers []int) ([]GPU, error) {
	version := ""
	if match := cudaPlugin.FindStringSubmatch(plugin); match != nil {
		version = match[2]
		if err := m.checkWheels(match[1], version); err != nil {
			return nil, err
		}
	}
	gpus, err := m.gpus()
	if err != nil {
		return nil, err
	}
	if len(gpus) == 0 {
		if all, isSet := m.lookup("CUDA_VISIBLE_DEVICES"); isSet {
			return nil, fmt.Errorf("%w that CUDA_VISIBLE_DEVICES=%q leaves: unset it, or name a GPU that `nvidia-smi -L` lists",
				errNone, all)
		}
		return nil, fmt.Errorf("%w is visible here: `nvidia-smi -L` must list one (without it, install NVIDIA's driver; in "+
			"a container, start it with --gpus all)", errNone)
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
	if least := oldest[version]; least > 0 {
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

// checkWheels checks that the NVIDIA libraries beside a plugin belong to its version of CUDA. Where set-up installed
// the wheels, it also checks that they have the versions that set-up pinned. Libraries that are not beside it may be
// where the system's loader looks.
func (m Machine) checkWheels(packages, version string) error {
	for _, library := range needed[version] {
		if exists(filepath.Join(packages, library)) || m.loaderHas(filepath.Base(library)) {
			continue
		}
		found := "none"
		for other, files := range needed {
			if other != version && exists(filepath.Join(packages, files[0])) {
				found = "those of CUDA " + other
			}
		}
		return fmt.Errorf("%w: the plugin in %s is for CUDA %s, but %s is missing (NVIDIA libraries beside it: %s); `%s` "+
			"installs both", errWheels, packages, version, library, found, setupCommand)
	}
	pinned, err := os.ReadFile(filepath.Join(packages, "requirements.txt"))
	if err != nil {
		return nil // not set-up's
	}
	for _, match := range pin.FindAllSubmatch(pinned, -1) {
		name, want := strings.ReplaceAll(string(match[1]), "-", "_"), string(match[2])
		if exists(filepath.Join(packages, name+"-"+want+".dist-info")) {
			continue
		}
		have := "missing"
		if others, _ := filepath.Glob(filepath.Join(packages, name+"-*.dist-info")); len(others) > 0 {
			have = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(others[0]), name+"-"), ".dist-info")
		}
		return fmt.Errorf("%w: %s in %s is %s, and set-up installs %s with the others; remove the folder and run `%s`",
			errWheels, match[1], packages, have, want, setupCommand)
	}
	return nil
}

// pin is a requirement: its groups are the name and the version.
var pin = regexp.MustCompile(`(?m)^([a-z0-9-]+)==([0-9][0-9a-z.]*)`)

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// loaderHas says whether a library is in LD_LIBRARY_PATH or where CUDA's own installer puts it.
func (m Machine) loaderHas(library string) bool {
	folders := filepath.SplitList(m.getenv("LD_LIBRARY_PATH"))
	for _, pattern := range []string{"usr/local/cuda*/lib64", "usr/lib/*-linux-gnu", "usr/lib64"} {
		found, _ := filepath.Glob(filepath.Join("/", m.Root, pattern)) // constant patterns: no error
		folders = append(folders, found...)
	}
	return slices.ContainsFunc(folders, func(folder string) bool { return exists(filepath.Join(folder, library)) })
}

// InWheels says whether a plugin for CUDA lies as in JAX's wheels, with NVIDIA's libraries beside it.
func InWheels(plugin string) bool { return cudaPlugin.MatchString(plugin) }

// DataFolder is the folder in which XLA finds ptxas and libdevice, which it compiles with, in a plugin's wheels; empty:
// there is none, and XLA looks where CUDA's own installer puts them.
func DataFolder(plugin string) string {
	match := cudaPlugin.FindStringSubmatch(plugin)
	if match == nil {
		return ""
	}
	for _, folder := range []string{"nvidia/cu" + match[2], "nvidia/cuda_nvcc"} {
		if folder = filepath.Join(match[1], folder); exists(filepath.Join(folder, "nvvm", "libdevice")) {
			return folder
		}
	}
	return ""
}

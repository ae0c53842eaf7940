package setup

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"gobnn/bayes/compute/accelerator"
	"gobnn/bayes/compute/environment"
)

// errPlatform is an accelerator whose plugin does not exist for this system.
var errPlatform = errors.New("no such plugin for this system")

var (
	//go:embed requirements-cuda.txt
	cudaRequirements string
	//go:embed requirements-tpu.txt
	tpuRequirements string
	//go:embed requirements-ray.txt
	rayRequirements string
	//go:embed requirements-ocr.txt
	ocrRequirements string
)

// extras are what is installed beside the environment where it is asked for, by their flags: plugins for accelerators,
// Ray, and the network of own-network.ipynb, an ONNX file that reads printed text.
var extras = map[string]struct {
	what         string
	requirements string
	systems      []string // GOOS/GOARCH
	python       string   // what a plugin without a build for a Python says
}{
	"cuda": {"plugin for CUDA", cudaRequirements, []string{"linux/amd64", "linux/arm64"}, ""},
	"tpu": {"plugin for TPUs", tpuRequirements, []string{"linux/amd64"},
		"; it has builds for Python 3.11 and later"},
	"ray": {"cluster engine Ray", rayRequirements, []string{"linux/amd64", "linux/arm64", "darwin/arm64"}, ""},
	"ocr": {"network that reads text", ocrRequirements, []string{"linux/amd64", "linux/arm64", "darwin/arm64"},
		"; it has builds for Python 3.12 and earlier"},
}

// EnsureExtra installs the plugin for GPUs ("cuda") or TPUs ("tpu") with its libraries, Ray ("ray"), or the network of
// a notebook ("ocr"), from pinned and hashed wheels, in a folder of its own beside the environment, unless it is there
// with the same pins. The environment must exist; see Ensure. It does not need the GPU: it reports what prevents its
// use, and goes on.
func (s *Setup) EnsureExtra(ctx context.Context, kind string) error {
	a, ok := extras[kind]
	if !ok {
		return fmt.Errorf("unknown extra %q: there are cuda, tpu, ray and ocr", kind)
	}
	if err := servedBy(a.what, a.systems, runtime.GOOS+"/"+runtime.GOARCH); err != nil {
		return err
	}
	env, err := environment.Dir()
	if err != nil {
		return err
	}
	link, err := environment.Extra(kind)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(a.requirements))
	pins := hex.EncodeToString(sum[:])[:12]
	if stamped(link, pins) {
		fmt.Fprintf(s.Out, "gobnn: the %s is in %s\n", a.what, link)
	} else if err := s.install(ctx, link, pins, stamped, func(dir string) error {
		return s.fillExtra(ctx, env, dir, kind)
	}); err != nil {
		return err
	}
	switch kind {
	case "cuda":
		s.sayGPUs(accelerator.Machine{}, link)
	case "tpu":
		s.sayTPU(accelerator.Machine{})
	}
	return nil
}

// servedBy is an errPlatform unless the system is among those that a plugin is built for.
func servedBy(what string, systems []string, system string) error {
	for _, served := range systems {
		if served == system {
			return nil
		}
	}
	return fmt.Errorf("%w: the %s is built for %v, not for %s", errPlatform, what, systems, system)
}

// fillExtra installs an extra in an empty folder.
func (s *Setup) fillExtra(ctx context.Context, env, dir, kind string) error {
	a := extras[kind]
	p := newProgress(s.Out, 1)
	defer p.fail()
	p.begin(a.what)
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list, []byte(a.requirements), 0o644); err != nil {
		return Explain(err)
	}
	if _, _, err := s.pip(ctx, env, list, p, "--no-cache-dir", "--target", dir); err != nil {
		if err = Explain(err); errors.Is(err, errPython) {
			err = fmt.Errorf("%w%s", err, a.python)
		}
		return fmt.Errorf("%s: %w", a.what, err)
	}
	p.done()
	return nil
}

// sayGPUs says which GPUs the plugin for CUDA in dir will compute on, or why it cannot.
func (s *Setup) sayGPUs(m accelerator.Machine, dir string) {
	// The pattern is a constant: no error.
	plugins, _ := filepath.Glob(filepath.Join(dir, "jax_plugins", "xla_cuda*", "xla_cuda_plugin.so"))
	for _, plugin := range plugins {
		gpus, err := m.Check(plugin, nil)
		if err != nil {
			s.sayCPU(err)
		}
		for i, gpu := range gpus {
			fmt.Fprintf(s.Out, "gobnn: GPU %d: %s\n", i, gpu)
		}
	}
}

// sayTPU says why programs cannot compute on a TPU, if they cannot.
func (s *Setup) sayTPU(m accelerator.Machine) {
	if err := m.CheckTPU(); err != nil {
		s.sayCPU(err)
	}
}

func (s *Setup) sayCPU(err error) {
	fmt.Fprintf(s.Out, "gobnn: programs go on computing on the CPU: %v\n", err)
}

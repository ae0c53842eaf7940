package setup

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gobnn/notebooks/tested"
)

// TestRequirements: what pip installs is pinned, hashed and comes from where the user's pip says.
func TestRequirements(t *testing.T) {
	names := pinned(t, requirements)
	for _, name := range []string{"jupyterlab", "nbclient", "nbconvert", "nbformat", "xla-cpu-pjrt"} {
		if _, ok := names[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	if marker := names["xla-cpu-pjrt"]; marker != " ; sys_platform == 'linux'" {
		t.Errorf("the plugin is there for Linux only: %s", marker)
	}
	if _, ok := names["ipykernel"]; ok {
		t.Error("ipykernel is there: it brings a kernel that is not the project's")
	}
	cuda := pinned(t, cudaRequirements)
	for _, name := range []string{"jax-cuda13-pjrt", "nvidia-cublas", "nvidia-cudnn-cu13", "nvidia-cuda-nvcc"} {
		if _, ok := cuda[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	if _, ok := pinned(t, tpuRequirements)["libtpu"]; !ok {
		t.Error("libtpu is missing")
	}
	if _, ok := pinned(t, ocrRequirements)["rapidocr-onnxruntime"]; !ok {
		t.Error("the network that reads text is missing")
	}
	if _, ok := pinned(t, rayRequirements)["ray"]; !ok {
		t.Error("ray is missing")
	}
}

// Ray speaks with its own version only: the nodes of docker/kuberay.yaml have the one that set-up installs, in an image
// that docker/Dockerfile makes, named by it.
func TestKubeRay(t *testing.T) {
	pin := regexp.MustCompile(`(?m)^ray==(\S+)`).FindStringSubmatch(rayRequirements)
	if pin == nil {
		t.Fatal("ray is not pinned")
	}
	read := func(name string) string {
		text := tested.Must(os.ReadFile(filepath.Join("..", "..", "docker", name)))
		return string(text)
	}
	manifest, dockerfile := read("kuberay.yaml"), read("Dockerfile")
	for pattern, want := range map[string][]string{
		`(?m)^ *rayVersion: "(.+?)"`:      {pin[1]},
		`(?m)^ *image: (\S+)$`:            {"gobnn:worker-" + pin[1], "gobnn:worker-" + pin[1]},
		`(?m)^# .*REGISTRY/gobnn:(\S+)$`:  {"worker-" + pin[1]},
		`ray-client-server-port: "(\d+)"`: {"10001"},
	} {
		var found []string
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(manifest, -1) {
			found = append(found, match[1])
		}
		if !slices.Equal(found, want) {
			t.Errorf("docker/kuberay.yaml: %s is %q, want %q", pattern, found, want)
		}
	}
	for _, line := range []string{"FROM cpu AS worker\n", "go run ./notebooks setup -ray "} {
		if !strings.Contains(dockerfile, line) {
			t.Errorf("docker/Dockerfile has no %q", line)
		}
	}
}

// pinned checks that all packages of a list are pinned and have hashes, and returns their markers by their names.
func pinned(t *testing.T, list string) map[string]string {
	t.Helper()
	pin := regexp.MustCompile(`^([a-z0-9-]+)==[0-9][0-9a-z.]*( ; .+)? \\$`)
	hash := regexp.MustCompile(`^    --hash=sha256:[0-9a-f]{64}( \\)?$`)
	markers := map[string]string{}
	last, hashes := "", 1
	for i, line := range strings.Split(strings.TrimSpace(list), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if match := pin.FindStringSubmatch(line); match != nil {
			if hashes == 0 {
				t.Errorf("line %d: %s has no hash", i, last)
			}
			last, hashes = match[1], 0
			markers[last] = match[2]
		} else if hash.MatchString(line) {
			hashes++
		} else {
			t.Errorf("line %d is neither a pin nor a hash: %s", i+1, line)
		}
	}
	if hashes == 0 {
		t.Errorf("%s has no hash", last)
	}
	return markers
}

func TestEnviron(t *testing.T) {
	for name, value := range map[string]string{"PYTHONPATH": "/x", "PIP_TARGET": "/x", "GOWORK": "off",
		"GOFLAGS": "-mod=mod -buildvcs=false -modfile=x", "KEPT": "yes"} {
		t.Setenv(name, value)
	}
	t.Setenv("JUPYTER_PATH", "/before")
	t.Setenv("GOBNN_CACHE", t.TempDir())
	s := Setup{Root: "/root/of/project"}
	env := map[string]string{}
	pairs := tested.Must(s.JupyterEnviron("/env"))
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		if _, twice := env[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		env[name] = value
	}
	// The kernel is in the cache folder: `jupyter kernelspec remove` does not touch the clone.
	kernels, before, _ := strings.Cut(env["JUPYTER_PATH"], ":")
	if !strings.HasPrefix(kernels, os.Getenv("GOBNN_CACHE")) || before != "/before" {
		t.Errorf("JUPYTER_PATH=%q", env["JUPYTER_PATH"])
	}
	if spec := readKernel(t, filepath.Join(kernels, "kernels", "gobnn")); spec.Argv[0] != "/env/bin/gobnn-kernel" ||
		spec.Argv[4] != "-go_work=/root/of/project" {
		t.Errorf("the kernel is started by %q", spec.Argv)
	}
	for name, want := range map[string]string{"GOFLAGS": "-buildvcs=false", "KEPT": "yes", "PYTHONNOUSERSITE": "1"} {
		if env[name] != want {
			t.Errorf("%s=%q, want %q", name, env[name], want)
		}
	}
	for _, name := range []string{"PYTHONPATH", "PIP_TARGET", "GOWORK"} {
		if value, there := env[name]; there {
			t.Errorf("%s=%q is still there", name, value)
		}
	}
	if !strings.HasPrefix(env["PATH"], "/env/bin:") || !strings.HasSuffix(env["PATH"], os.Getenv("PATH")) {
		t.Errorf("PATH=%q", env["PATH"])
	}
}

func TestRoot(t *testing.T) {
	root := t.TempDir()
	tested.Write(filepath.Join(root, "go.mod"), "// A comment.\nmodule gobnn\n\ngo 1.26\n")
	deep := filepath.Join(root, "notebooks", "tools")
	tested.Write(filepath.Join(deep, "go.mod"), "module gobnn/notebooks/tools\n")
	if got, err := Root(deep); err != nil || got != root {
		t.Errorf("Root(%s) = %q, %v; want %q", deep, got, err, root)
	}
	if _, err := Root(t.TempDir()); err == nil {
		t.Error("a folder outside the project has a root")
	}
}

func TestDownloadSize(t *testing.T) {
	for line, want := range map[string]float64{
		"  Downloading jupyterlab-4.6.6-py3-none-any.whl (12.5 MB)":       12.5e6,
		"  Downloading six-1.17.0-py2.py3-none-any.whl.metadata (1.7 kB)": 1.7e3,
		"Downloading xla_cpu_pjrt-0.0.1-py3-none-manylinux.whl (1.5 GB)":  1.5e9,
	} {
		if got := downloadSize(line); got != want {
			t.Errorf("%q: %v bytes, want %v", line, got, want)
		}
	}
}

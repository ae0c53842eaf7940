package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"gobnn/bayes/compute/environment"
	"gobnn/notebooks/program"

	"github.com/google/renameio/v2"
)

// kernelName is the name by which notebooks ask for the kernel.
const kernelName = "gobnn"

// errNotOurs says that a kernel of this name is there that set-up did not write.
var errNotOurs = errors.New("it is no kernel of this project")

// kernelSpec is the file that Jupyter reads for a kernel.
type kernelSpec struct {
	Argv          []string          `json:"argv"`
	DisplayName   string            `json:"display_name"`
	Language      string            `json:"language"`
	InterruptMode string            `json:"interrupt_mode"`
	Env           map[string]string `json:"env"`
	Metadata      struct {
		Root string `json:"gobnn_root,omitempty"` // the clone that it is of; it says that the file is ours
	} `json:"metadata"`
}

// KernelFolder returns the folder where a Jupyter looks for the kernel: the user's, or, if prefix is not empty, the
// folder of the Jupyter installed there.
func KernelFolder(prefix string) (string, error) {
	data := filepath.Join(prefix, "share", "jupyter")
	if prefix == "" {
		var err error
		if data, err = jupyterData(); err != nil {
			return "", err
		}
	}
	folder, err := filepath.Abs(filepath.Join(data, "kernels", kernelName))
	if err != nil {
		return "", fmt.Errorf("the kernel's folder: %w", err)
	}
	return folder, nil
}

// jupyterData returns the folder that `jupyter --data-dir` prints.
func jupyterData() (string, error) {
	if dir := os.Getenv("JUPYTER_DATA_DIR"); dir != "" {
		return dir, nil
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" && runtime.GOOS != "darwin" {
		return filepath.Join(dir, "jupyter"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("the data folder of Jupyter (JUPYTER_DATA_DIR names one): %w", err)
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Jupyter"), nil
	}
	return filepath.Join(home, ".local", "share", "jupyter"), nil
}

// WriteKernel tells another Jupyter of the kernel, in KernelFolder: by absolute paths, with the variables that the
// kernel needs, so that it may be started from anywhere. env is Ensure's.
func (s *Setup) WriteKernel(ctx context.Context, env, folder string) error {
	cache, err := environment.CacheDir()
	if err != nil {
		return err
	}
	variables := map[string]string{"GOBNN_CACHE": cache, "GOWORK": "", "PATH": s.path(env)}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // for another home folder, as a service may have
		if variables[name], err = program.Output(ctx, program.Command{Args: []string{"go", "env", name}, Dir: s.Root,
			Env: s.environ(nil)}); err != nil {
			return fmt.Errorf("go env %s: %w", name, err)
		}
	}
	return s.writeKernel(env, folder, variables)
}

// writeKernel writes the kernel's file, if no other kernel stands in its place.
func (s *Setup) writeKernel(env, folder string, variables map[string]string) error {
	if err := ours(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	root, err := filepath.Abs(s.Root)
	if err != nil {
		return err
	}
	spec := kernelSpec{
		Argv: []string{filepath.Join(env, "bin", launcher), "--kernel", "{connection_file}", "--logtostderr",
			"-go_work=" + root},
		DisplayName: "Go (gobnn)", Language: "go", InterruptMode: "signal", Env: variables,
	}
	spec.Metadata.Root = root
	text, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return fmt.Errorf("the kernel's file: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("the kernel's folder: %w", err)
	}
	if err := renameio.WriteFile(filepath.Join(folder, "kernel.json"), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("the kernel's file: %w", err)
	}
	return nil
}

// RemoveKernel takes back what WriteKernel wrote in a folder, and nothing else.
func RemoveKernel(folder string) error {
	if err := ours(folder); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(folder, "kernel.json")); err != nil {
		return fmt.Errorf("the kernel: %w", err)
	}
	if err := os.Remove(folder); err != nil {
		return fmt.Errorf("the kernel is removed; its folder has files of another's: %w", err)
	}
	return nil
}

// ours is an error unless the folder has a kernel that WriteKernel wrote; it wraps fs.ErrNotExist where there is none.
func ours(folder string) error {
	file := filepath.Join(folder, "kernel.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("no kernel is there: %w", err)
	}
	var spec kernelSpec
	if err := json.Unmarshal(text, &spec); err != nil || spec.Metadata.Root == "" {
		return fmt.Errorf("%s: %w, and so left as it is", file, errNotOurs)
	}
	return nil
}

// path is PATH with the environment's programs and Go before it.
func (s *Setup) path(env string) string {
	path := filepath.Join(env, "bin")
	if goPath, err := exec.LookPath("go"); err == nil {
		path += string(os.PathListSeparator) + filepath.Dir(goPath)
	}
	return path + string(os.PathListSeparator) + os.Getenv("PATH")
}

// ownKernel writes the kernel for the Jupyter of the environment into the cache folder, where `jupyter kernelspec
// remove` does no harm, and returns the folder that JUPYTER_PATH is to name. Each clone has its own.
func (s *Setup) ownKernel(env string) (string, error) {
	cache, err := environment.CacheDir()
	if err != nil {
		return "", err
	}
	hash := fnv.New64a()
	hash.Write([]byte(s.Root)) //nolint:errcheck // a hash takes all
	data := filepath.Join(cache, "jupyter", fmt.Sprintf("%x", hash.Sum64()))
	return data, s.writeKernel(env, filepath.Join(data, "kernels", kernelName), map[string]string{})
}

package setup

import (
	"os"
	"slices"
	"strings"

	"gobnn/notebooks/program"
)

// disturbing lists the variables that would make Python, pip or Go use something else than the environment and the
// project.
var disturbing = []string{"PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_REQUIREMENT",
	"GOWORK", "GOBIN", "__PYVENV_LAUNCHER__"}

// environ returns this process's environment without the disturbing variables. The variables of more are added, or
// replace others.
func (s *Setup) environ(more []string) []string {
	more = append(more, "PYTHONNOUSERSITE=1")
	drops := slices.Clone(disturbing)
	for _, pair := range more { // of a name that occurs twice some programs take the first
		name, _, _ := strings.Cut(pair, "=")
		drops = append(drops, name)
	}
	var env []string
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if slices.Contains(drops, name) {
			continue
		}
		if name == "GOFLAGS" {
			pair = "GOFLAGS=" + program.InWorkspace(value)
		}
		env = append(env, pair)
	}
	return append(env, more...)
}

// JupyterEnviron is the environment for Jupyter: it finds the project's kernel, the kernel finds GoNB, goimports and
// Go, and cells find the XLA plugin. envDir is Ensure's.
func (s *Setup) JupyterEnviron(envDir string) ([]string, error) {
	jupyter, err := s.ownKernel(envDir)
	if err != nil {
		return nil, err
	}
	if before := os.Getenv("JUPYTER_PATH"); before != "" {
		jupyter += string(os.PathListSeparator) + before
	}
	return s.environ([]string{"PATH=" + s.path(envDir), "JUPYTER_PATH=" + jupyter}), nil
}

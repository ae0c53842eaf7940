package setup

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"gobnn/bayes/compute/environment"
)

// requirements are the packages that pip installs, with hashes.
//
//go:embed requirements.txt
var requirements string

// layout is the version of the environment's structure: another one makes every old environment stale.
const layout = 2

// pins is a hash of what an environment is made of: the Python packages and their settings, the tool module, the
// kernel's own program and the layout.
func pins(root string) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %s %s\n%s%s%s", layout, runtime.GOOS, runtime.GOARCH, requirements, labSettings, serverSettings)
	for _, name := range []string{"tools/go.mod", "tools/go.sum", "tools/cpuplugin/main.go", "tools/gopls/go.mod",
		"tools/gopls/go.sum", "cells/main.go", "program/goflags.go"} {
		text, err := os.ReadFile(filepath.Join(root, "notebooks", filepath.FromSlash(name)))
		if err != nil {
			return "", fmt.Errorf("the programs that set-up builds: %w", err)
		}
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// whole says whether the environment in dir was completed with these pins and still has its programs.
func whole(dir, pins string) bool {
	if !stamped(dir, pins) {
		return false
	}
	// A venv breaks when its Python is uninstalled.
	for _, program := range []string{"python", "gonb", "goimports", launcher} {
		if _, err := os.Stat(filepath.Join(dir, "bin", program)); err != nil {
			return false
		}
	}
	return true
}

// stamped says whether the folder was completed with these pins.
func stamped(dir, pins string) bool {
	stamp, err := os.ReadFile(filepath.Join(dir, environment.Stamp))
	return err == nil && strings.TrimSpace(string(stamp)) == pins
}

// Root is the project's folder: the one at or above dir whose go.mod is module gobnn.
func Root(dir string) (string, error) {
	start := dir
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && (strings.HasPrefix(string(text), "module gobnn\n") ||
			strings.Contains(string(text), "\nmodule gobnn\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "",
				fmt.Errorf("%s is not within the project (no go.mod of module gobnn at or above it): cd into the clone first",
					start)
		}
		dir = parent
	}
}

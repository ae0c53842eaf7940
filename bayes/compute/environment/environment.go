// Package environment says where the project keeps what it keeps between runs. It stands apart from package compute,
// which says the same, so that a program that needs only the folders does not link GoMLX and XLA.
package environment

import (
	"fmt"
	"os"
	"path/filepath"
)

// Stamp is the file in Dir that set-up writes last: without it the environment is not whole.
const Stamp = "complete"

// CacheDir is the folder that holds what the project keeps between runs: the private environment, downloaded data and
// the results of studies. It is $GOBNN_CACHE where that is set, else "gobnn" in the user's cache folder. It need not
// exist.
func CacheDir() (string, error) {
	if dir := os.Getenv("GOBNN_CACHE"); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("GOBNN_CACHE=%q: %w", dir, err)
		}
		return abs, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder (set GOBNN_CACHE to a folder of your own): %w", err)
	}
	return filepath.Join(dir, "gobnn"), nil
}

// Dir is the folder of the private environment that `go run ./notebooks setup` makes: a Python venv with JupyterLab and
// the XLA plugin, and the notebooks' Go tools. It is a link to a folder beside it, named by what was pinned when it was
// made, and changes from one whole environment to the next at once. It is whole if it holds Stamp.
func Dir() (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "env"), nil
}

// Extra is the folder of what `go run ./notebooks setup -cuda`, `-tpu`, `-ray` or `-ocr` installs beside the
// environment, where kind is "cuda" or "tpu", the plugin and its libraries, "ray", or "ocr", a network. It is a link,
// as Dir is, and whole if it holds Stamp.
func Extra(kind string) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, kind), nil
}

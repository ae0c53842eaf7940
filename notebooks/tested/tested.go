// Package tested has what tests of the notebooks' programs do in one line: an error ends them.
package tested

import (
	"os"
	"path/filepath"
)

// Must returns the value unless there is an error.
func Must[T any](value T, err error) T {
	NoError(err)
	return value
}

// NoError ends the test by an error.
func NoError(err error) {
	if err != nil {
		panic(err)
	}
}

// Write makes a file that may be executed, with its folder.
func Write(path, text string) {
	NoError(os.MkdirAll(filepath.Dir(path), 0o755))
	NoError(os.WriteFile(path, []byte(text), 0o755))
}

// Read returns a file's text.
func Read(path string) string { return string(Must(os.ReadFile(path))) }

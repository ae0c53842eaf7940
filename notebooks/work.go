package main

// The folder that JupyterLab opens on is the user's own, outside the source tree, with a template to begin from and
// copies of the project's notebooks.

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gobnn/notebooks/execute"

	"github.com/google/renameio/v2"
)

// workVariable names the environment variable with the user's folder.
const workVariable = "GOBNN_WORK"

// templateName is the name of the notebook to begin from.
const templateName = "template.ipynb"

//go:embed work/template.ipynb
var template []byte

// sums is the file, in the format of sha256sum, that says what the copies were when they were made: a copy that is no
// longer that has been changed by the user, and stays.
const sums = ".gobnn-copies"

// workDir is the user's folder: $GOBNN_WORK, or else gobnn in the home folder.
func workDir() (string, error) {
	if dir := os.Getenv(workVariable); dir != "" {
		return filepath.Abs(dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("a folder for your notebooks: %w; set %s to one", err, workVariable)
	}
	return filepath.Join(home, "gobnn"), nil
}

// executedDir is the folder for executed notebooks, in the user's; it is made.
func executedDir() (string, error) {
	dir, err := workDir()
	if err != nil {
		return "", err
	}
	into := filepath.Join(dir, "executed")
	if err := os.MkdirAll(into, 0o755); err != nil {
		return "", unwritable(dir, err)
	}
	if err := writable(into); err != nil {
		return "", unwritable(dir, err)
	}
	return into, nil
}

// inside says whether dir lies in root, or is root, symbolic links followed.
func inside(root, dir string) bool {
	rest, err := filepath.Rel(followed(root), followed(dir))
	return err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}

// followed is a path without symbolic links, as far as it exists.
func followed(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(followed(parent), filepath.Base(path))
	}
	return path
}

// fillWork makes the folder dir, and puts into it the template and copies of the notebooks in folder. A file that is
// there is left alone, unless it is a copy that nobody has changed: that follows the project's. fillWork returns the
// names of copies that were changed and are older than the project's notebooks.
func fillWork(folder, dir string) (older []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, unwritable(dir, err)
	}
	contents := map[string][]byte{templateName: template}
	names, err := execute.Names(folder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		name += ".ipynb"
		if contents[name], err = os.ReadFile(filepath.Join(folder, name)); err != nil {
			return nil, err
		}
	}
	before := copies(dir)
	now := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		path, sum := filepath.Join(dir, name), sumOf(contents[name])
		there, err := os.ReadFile(path)
		switch {
		case err == nil && sumOf(there) == sum:
		case err == nil && sumOf(there) != before[name]:
			if before[name] != "" {
				now[name] = before[name]
			}
			if before[name] != sum {
				older = append(older, name)
			}
			continue
		case err == nil || errors.Is(err, fs.ErrNotExist):
			if err := write(path, contents[name]); err != nil {
				return nil, unwritable(dir, err)
			}
		default:
			return nil, fmt.Errorf("your notebook %s: %w", path, err)
		}
		now[name] = sum
	}
	if maps.Equal(before, now) {
		return older, nil
	}
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(now)) {
		fmt.Fprintf(&lines, "%s  %s\n", now[name], name)
	}
	if err := write(filepath.Join(dir, sums), []byte(lines.String())); err != nil {
		return nil, unwritable(dir, err)
	}
	return older, nil
}

// copies returns the sums by name as they were last noted. If the file cannot be read it returns none.
func copies(dir string) map[string]string {
	noted := map[string]string{}
	data, err := os.ReadFile(filepath.Join(dir, sums))
	if err != nil {
		return noted
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		if sum, name, ok := strings.Cut(lines.Text(), "  "); ok {
			noted[name] = sum
		}
	}
	return noted
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// write makes a file whole or not at all.
func write(path string, data []byte) error {
	return renameio.WriteFile(path, data, 0o644, renameio.WithTempDir(filepath.Dir(path)))
}

// writable is an error unless a file can be made in dir.
func writable(dir string) error {
	probe, err := os.CreateTemp(dir, ".gobnn-*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// unwritable is the error for a folder of the user's that cannot be filled.
func unwritable(dir string, err error) error {
	return fmt.Errorf("the folder for your notebooks, %s: %w; name another one: %s=%s", dir, err, workVariable,
		filepath.Join(os.TempDir(), filepath.Base(dir)))
}

package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// choosePlugin makes the library prefer the PJRT plugin in file to the pinned one, by a link in the environment.
// "default" removes such links.
func choosePlugin(env, file string) error {
	folder := filepath.Join(env, "plugin")
	if file != "default" {
		var err error
		if file, err = checkPlugin(file); err != nil {
			return err
		}
	}
	links, err := pluginLinks(env)
	if err != nil {
		return err
	}
	for _, link := range links {
		if err := os.Remove(link); err != nil {
			return unwritable(folder, err)
		}
	}
	if file == "default" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return unwritable(folder, err)
	}
	if err := os.Symlink(file, filepath.Join(folder, filepath.Base(file))); err != nil {
		return unwritable(folder, err)
	}
	return nil
}

// checkPlugin checks that file can be a plugin, and returns its absolute path.
func checkPlugin(file string) (string, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("%w: %q: %w", ErrPlugin, file, err)
	}
	if ext := filepath.Ext(path); ext != ".so" && ext != ".dylib" {
		return "", fmt.Errorf("%w: %s: its name must end in .so or .dylib", ErrPlugin, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrPlugin, err)
	}
	defer f.Close()
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrPlugin, path, err)
	}
	// Linux; macOS, one processor and several
	for _, magic := range []string{"\x7fELF", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"} {
		if bytes.Equal(head, []byte(magic)) {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %s is not a shared library", ErrPlugin, path)
}

// pluginLinks are the links to plugins outside the environment. (go-xla's installer makes files, and a link between
// them.)
func pluginLinks(env string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(env, "plugin"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("plugins of the environment: %w", err)
	}
	var links []string
	for _, entry := range entries {
		path := filepath.Join(env, "plugin", entry.Name())
		if to, err := os.Readlink(path); err == nil && filepath.IsAbs(to) {
			links = append(links, path)
		}
	}
	return links, nil
}

// keepPlugins copies the choice of a plugin from an old environment to its replacement.
func keepPlugins(old, target string) error {
	links, err := pluginLinks(old)
	if err != nil || len(links) == 0 {
		return err
	}
	to, err := os.Readlink(links[0])
	if err != nil {
		return fmt.Errorf("plugins of the environment: %w", err)
	}
	if _, err := os.Stat(to); err != nil {
		return nil // the plugin no longer exists: the pinned one is used
	}
	return choosePlugin(target, to)
}

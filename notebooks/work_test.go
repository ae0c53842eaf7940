package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, path, text string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("%s holds %q (%v), want %q", path, got, err, text)
	}
}

// Copies follow the project's notebooks until the user changes them, and come again when they are removed. Nothing is
// written where the project's lie. Both paths have characters that shells and patterns take for something else.
func TestFill(t *testing.T) {
	folder, dir := filepath.Join(t.TempDir(), "a [clone] *"), filepath.Join(t.TempDir(), "my work", "deep")
	quick, mine := filepath.Join(dir, "quickstart.ipynb"), filepath.Join(dir, "mine.ipynb")
	put(t, filepath.Join(folder, "quickstart.ipynb"), "one")
	put(t, filepath.Join(folder, "ohsmc.ipynb"), "first")
	fill := func(older ...string) {
		t.Helper()
		got, err := fillWork(folder, dir)
		if err != nil || !slices.Equal(got, older) {
			t.Fatalf("older %q, %v; want %q", got, err, older)
		}
	}
	fill()
	want(t, quick, "one")
	want(t, filepath.Join(dir, templateName), string(template))
	put(t, mine, "mine")
	put(t, filepath.Join(folder, "quickstart.ipynb"), "two")
	fill()
	want(t, quick, "two") // nobody had changed it

	put(t, quick, "changed")
	fill()
	want(t, quick, "changed")
	put(t, filepath.Join(folder, "quickstart.ipynb"), "three")
	fill("quickstart.ipynb")
	fill("quickstart.ipynb")
	want(t, quick, "changed")
	if err := os.Remove(quick); err != nil {
		t.Fatal(err)
	}
	fill()
	want(t, quick, "three")
	want(t, mine, "mine")

	put(t, filepath.Join(dir, sums), "broken") // then nothing is known, and nothing is overwritten
	put(t, filepath.Join(folder, "ohsmc.ipynb"), "second")
	fill("ohsmc.ipynb")
	want(t, filepath.Join(dir, "ohsmc.ipynb"), "first")
	if names, err := os.ReadDir(folder); err != nil || len(names) != 2 {
		t.Errorf("beside the project's notebooks: %q, %v", names, err)
	}
}

func TestBadFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, "")
	for name, dir := range map[string]string{"a file": file, "below a file": filepath.Join(file, "work"),
		"not writable, even by root": "/proc/gobnn"} {
		if _, err := fillWork(t.TempDir(), dir); err == nil || !strings.Contains(err.Error(), dir) ||
			!strings.Contains(err.Error(), "GOBNN_WORK=") {
			t.Errorf("%s: error %v, want one that names it and GOBNN_WORK", name, err)
		}
	}
	if err := writable("/proc"); err == nil {
		t.Error("/proc is writable")
	}
	dir := t.TempDir()
	if err := writable(dir); err != nil {
		t.Error(err)
	}
	if names, _ := os.ReadDir(dir); len(names) > 0 {
		t.Errorf("Writable left %v", names)
	}
}

func TestDir(t *testing.T) {
	home := filepath.Join(t.TempDir(), "my home")
	t.Setenv("HOME", home)
	t.Setenv(workVariable, "")
	if got, err := workDir(); err != nil || got != filepath.Join(home, "gobnn") {
		t.Errorf("%q, %v", got, err)
	}
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(workVariable, "a b")
	if got, err := workDir(); err != nil || got != filepath.Join(here, "a b") {
		t.Errorf("%q, %v", got, err)
	}
	t.Setenv(workVariable, "")
	t.Setenv("HOME", "")
	if _, err := workDir(); err == nil || !strings.Contains(err.Error(), workVariable) {
		t.Errorf("no home: error %v", err)
	}
}

func TestInside(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	link := filepath.Join(other, "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{root: true, filepath.Join(root, "..x"): true, root + "x": false, other: false,
		filepath.Join(link, "new"): true, filepath.Dir(root): false} {
		if got := inside(root, dir); got != want {
			t.Errorf("%s in %s: %v", dir, root, got)
		}
	}
}

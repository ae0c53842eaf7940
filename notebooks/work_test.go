package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/notebooks/tested"
)

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
	tested.Write(filepath.Join(folder, "quickstart.ipynb"), "one")
	tested.Write(filepath.Join(folder, "ohsmc.ipynb"), "first")
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
	tested.Write(mine, "mine")
	tested.Write(filepath.Join(folder, "quickstart.ipynb"), "two")
	fill()
	want(t, quick, "two") // nobody had changed it

	tested.Write(quick, "changed")
	fill()
	want(t, quick, "changed")
	tested.Write(filepath.Join(folder, "quickstart.ipynb"), "three")
	fill("quickstart.ipynb")
	fill("quickstart.ipynb")
	want(t, quick, "changed")
	tested.NoError(os.Remove(quick))
	fill()
	want(t, quick, "three")
	want(t, mine, "mine")

	tested.Write(filepath.Join(dir, sums), "broken") // then nothing is known, and nothing is overwritten
	tested.Write(filepath.Join(folder, "ohsmc.ipynb"), "second")
	fill("ohsmc.ipynb")
	want(t, filepath.Join(dir, "ohsmc.ipynb"), "first")
	if names, err := os.ReadDir(folder); err != nil || len(names) != 2 {
		t.Errorf("beside the project's notebooks: %q, %v", names, err)
	}
}

// A folder that cannot be is named with the cure. $GOBNN_WORK may be relative; else it is in the home folder.
func TestDir(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	tested.Write(file, "")
	for _, dir := range []string{file, "/proc/gobnn"} { // which root cannot write either
		if _, err := fillWork(t.TempDir(), dir); err == nil || !strings.Contains(err.Error(), dir) ||
			!strings.Contains(err.Error(), "GOBNN_WORK=") {
			t.Errorf("error %v, want one that names %s and GOBNN_WORK", err, dir)
		}
	}
	t.Chdir(t.TempDir())
	here := tested.Must(os.Getwd())
	for _, c := range []struct{ home, work, want string }{
		{"/my home", "", "/my home/gobnn"}, {"/my home", "a b", filepath.Join(here, "a b")}, {"", "", ""},
	} {
		t.Setenv("HOME", c.home)
		t.Setenv(workVariable, c.work)
		if got, err := workDir(); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

func TestInside(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	link := filepath.Join(other, "link")
	tested.NoError(os.Symlink(root, link))
	for dir, want := range map[string]bool{root: true, filepath.Join(root, "..x"): true, root + "x": false, other: false,
		filepath.Join(link, "new"): true, filepath.Dir(root): false} {
		if got := inside(root, dir); got != want {
			t.Errorf("%s in %s: %v", dir, root, got)
		}
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gobnn/notebooks/execute"
	"gobnn/notebooks/tested"
)

// A run that was stopped fails its cell, in every notebook: part of a run is not shown as the whole. It does so on one
// line.
func TestStoppedRunsFail(t *testing.T) {
	paths, err := filepath.Glob("*.ipynb")
	if err != nil || len(paths) == 0 {
		t.Fatalf("notebooks: %q, %v", paths, err)
	}
	paths = append(paths, filepath.Join("work", templateName))
	begins := regexp.MustCompile(`\w\.(Fit|FitFrom|FitShards)\(`)
	for _, path := range paths {
		source := tested.Must(packageOf(path))
		// whole is the quickstart's own check.
		runs, checks := len(begins.FindAllString(source, -1)), strings.Count(source, ".Status.Err()")
		checks += max(0, strings.Count(source, " whole(")-1)
		if runs > 0 && !strings.Contains(source, "\t\trun.Fail(err)\n") {
			t.Errorf("%s: its must does not end a stopped cell by run.Fail(err)", path)
		}
		if runs > checks {
			t.Errorf("%s: %d runs, and %d checks of their status: add must(r, r.Status.Err())", path, runs, checks)
		}
	}
}

// The cells of every notebook compile against the packages as they are, each notebook as one package: declarations as
// they stand, and what stands below a cell's "%%" as a function.
func TestNotebooksCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program for each notebook")
	}
	paths, err := filepath.Glob("*.ipynb")
	if err != nil || len(paths) == 0 {
		t.Fatalf("notebooks: %q, %v", paths, err)
	}
	paths = append(paths, filepath.Join("work", templateName))
	root := tested.Must(filepath.Abs(".."))
	overlay := map[string]string{} // files that the compiler is to see in the module, and where they are
	folder := t.TempDir()
	var packages []string
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".ipynb")
		source := tested.Must(packageOf(path))
		file := filepath.Join(folder, name+".go")
		tested.NoError(os.WriteFile(file, []byte(source), 0o644))
		overlay[filepath.Join(root, "notebooks", "cells", name, "cells.go")] = file
		packages = append(packages, "./notebooks/cells/"+name)
	}
	replace := tested.Must(json.Marshal(map[string]any{"Replace": overlay}))
	file := filepath.Join(folder, "overlay.json")
	tested.NoError(os.WriteFile(file, replace, 0o644))
	command := exec.Command("go", append([]string{"build", "-overlay=" + file}, packages...)...)
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("the notebooks' cells: %v\n%s", err, out)
	}
}

// packageOf is a notebook as the source of a Go package.
func packageOf(path string) (string, error) {
	cells, err := execute.Sources(path, "code")
	if err != nil {
		return "", err
	}
	var imports, declared strings.Builder
	for i, source := range cells {
		if source == "" {
			continue
		}
		const declaring, importing, running = 0, 1, 2
		state := declaring
		for line := range strings.Lines(source) {
			switch trimmed := strings.TrimSpace(line); {
			case trimmed == "%%":
				state = running
				fmt.Fprintf(&declared, "func cell%d() {\n", i+1)
			case state == declaring && trimmed == "import (":
				state = importing
			case state == importing && trimmed == ")":
				state = declaring
			case state == importing:
				imports.WriteString(line)
			default:
				declared.WriteString(line)
			}
		}
		declared.WriteString("\n")
		if state == running {
			declared.WriteString("}\n")
		}
	}
	return "package cells\n\nimport (\n" + imports.String() + "\n)\n\n" + declared.String(), nil
}

// No notebook's file is larger than 3 MB: a larger one is slow to open, and each execution adds it to the clone.
func TestNotebooksSize(t *testing.T) {
	const limit = 3_000_000
	paths, err := filepath.Glob("*.ipynb")
	if err != nil || len(paths) == 0 {
		t.Fatalf("notebooks: %q, %v", paths, err)
	}
	for _, path := range paths {
		info := tested.Must(os.Stat(path))
		if info.Size() >= limit {
			t.Errorf("%s has %d bytes, limit %d: make its figures smaller or split it", path, info.Size(), limit)
		}
	}
}

// A link of a notebook leads to a page of the web or to a file that stands beside the user's copy of it, which lies
// outside the source tree.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	if _, err := fillWork(".", dir); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.ipynb"))
	if err != nil || len(paths) < 2 {
		t.Fatalf("notebooks: %q, %v", paths, err)
	}
	link := regexp.MustCompile(`\]\(([^()\s]+)\)`)
	for _, path := range paths {
		cells := tested.Must(execute.Sources(path, "markdown"))
		for i, source := range cells {
			for _, found := range link.FindAllStringSubmatch(source, -1) {
				if to := found[1]; !strings.HasPrefix(to, "https://") && !exists(filepath.Join(dir, to)) {
					t.Errorf("%s, cell %d: a link to %s, which is not beside a user's copy", filepath.Base(path), i, to)
				}
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

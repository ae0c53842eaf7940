package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gobnn/bayes/compute/environment"
	"gobnn/notebooks/setup"
	"gobnn/notebooks/tested"
)

// ready is the module's folder and the private environment's. The test is skipped where that, with what helps while
// typing or without, is not set up.
func ready(t *testing.T, help bool) (root, env string) {
	t.Helper()
	root = tested.Must(filepath.Abs(".."))
	if ready, err := setup.Ready(root, help); err != nil || !ready {
		t.Skipf("no kernel (%v): the environment is not set up; mend it with: go run ./notebooks setup", err)
	}
	env = tested.Must(environment.Dir())
	return root, env
}

// kernel runs testdata/kernel.py, which speaks to the kernel, in a folder of its own, and returns its standard output.
// The test is skipped where the kernel is not ready.
func kernel(t *testing.T, help bool, folder, input string, args ...string) []byte {
	t.Helper()
	root, env := ready(t, help)
	script := tested.Must(filepath.Abs(filepath.Join("testdata", "kernel.py")))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(env, "bin", "python"), append([]string{script}, args...)...)
	command.Dir, command.Stdin = folder, strings.NewReader(input)
	command.Env = tested.Must((&setup.Setup{Root: root}).JupyterEnviron(env))
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		t.Fatalf("kernel.py %q: %v\n%s%s", args, err, out, said.Bytes())
	}
	return out
}

// Tab completes to the names of a package that the cell imports, and Shift-Tab shows their documentation.
func TestCompletion(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until gopls has read the modules")
	}
	out := kernel(t, true, t.TempDir(), "", "complete")
	var answers struct {
		Matches, Narrowed      []string
		Documentation, Nothing map[string]string
	}
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"Layers", "Load", "Model"} {
		if !slices.Contains(answers.Matches, want) {
			t.Errorf("bayes. completes to %q, not to %s", answers.Matches, want)
		}
	}
	if !slices.Contains(answers.Narrowed, "Layers") || slices.Contains(answers.Narrowed, "Model") {
		t.Errorf("bayes.Lay completes to %q", answers.Narrowed)
	}
	shown := answers.Documentation["text/markdown"] + answers.Documentation["text/plain"]
	for _, want := range []string{"func bayes.Layers(", "weights and biases of the numbered layers"} {
		if !strings.Contains(shown, want) {
			t.Errorf("of bayes.Layers it shows %q, without %q", answers.Documentation, want)
		}
	}
	if strings.Contains(shown, "pkg.go.dev") {
		t.Errorf("of bayes.Layers it shows a link to a page that is not there: %q", answers.Documentation)
	}
	if shown := answers.Nothing["text/markdown"] + answers.Nothing["text/plain"]; strings.Contains(shown, "func ") {
		t.Errorf("of an unknown name it shows %q", answers.Nothing)
	}
}

// The report of a panic in a cell, and of an error that must was given, names the lines of the cell that it came by:
// that of the function, and that of the call. (The stack trace above it may lack one: the kernel marks it in whatever
// pieces the dying program writes.)
func TestPanicNamesLine(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a cell")
	}
	const third = "func third(of []int) int {\n\treturn of[2]\n}\n\n%%\nfmt.Println(third(nil))\n"
	const missing = `import "gobnn/bayes/run"

func must[T any](value T, err error) T {
	if err != nil {
		run.Fail(err)
	}
	return value
}

func read() []byte { return must(os.ReadFile("missing.csv")) }

%%
fmt.Println(read())
`
	for cell, wants := range map[string][]string{
		third:   {"index out of range [2]", "main.third", "Cell[0]: Line 2<", "Cell[0]: Line 6<"},
		missing: {"open missing.csv: no such file or directory\n", "Cell[0]: Line 10<", "Cell[0]: Line 13<"},
	} {
		out := string(kernel(t, false, t.TempDir(), cell, "run"))
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("it does not say %q: %s", want, out)
			}
		}
		if cell == missing && strings.Contains(out, "goroutine") {
			t.Errorf("an error that is the user's has a trace: %s", out)
		}
	}
}

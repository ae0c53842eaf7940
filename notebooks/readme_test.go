package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gobnn/notebooks/tested"
)

// A module outside the project builds the README's Go example by the README's own lines.
func TestReadmeModule(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module of its own")
	}
	root := tested.Must(filepath.Abs(".."))
	readme := tested.Must(os.ReadFile(filepath.Join(root, "README.md")))
	program := fenced(t, string(readme), "```go\n(package main\n.*?)```")
	lines := strings.Split(strings.TrimSpace(fenced(t, string(readme), "```\n(go mod edit.*?)```")), "\n")

	folder := t.TempDir()
	tested.NoError(os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o644))
	lines = append([]string{"go mod init example"}, lines...)
	// go test also vets the program, by what the project's own go test has vetted; go vet would vet every package anew.
	for _, line := range append(lines, "go test .") {
		words := strings.Fields(strings.ReplaceAll(line, "=../gobnn", "="+root))
		command := exec.Command(words[0], words[1:]...)
		command.Dir = folder
		command.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
}

func fenced(t *testing.T, text, pattern string) string {
	t.Helper()
	found := regexp.MustCompile("(?s)" + pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("the README has no block %q", pattern)
	}
	return found[1]
}

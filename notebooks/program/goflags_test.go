package program

import (
	"os"
	"os/exec"
	"testing"
)

func TestInWorkspace(t *testing.T) {
	for text, want := range map[string]string{
		"":  "",
		"y": "y",
		"-mod=mod '-ldflags=-X a=b c' --modfile=/x y": "'-ldflags=-X a=b c'  y",
		"'-modfile=/a b' -modcacherw":                 "-modcacherw",
		`-v "--mod=mod"`:                              "-v",
	} {
		if got := InWorkspace(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The go command reads what Linking makes: it fails on those that it cannot.
func TestLinking(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "'-ldflags=-s -linkmode=internal'",
		"-v":                        "'-ldflags=-s -linkmode=internal' -v",
		"-ldflags=all=-w '-tags=a'": "'-ldflags=-s -linkmode=internal' -ldflags=all=-w '-tags=a'",
		"'-v":                       "'-ldflags=-s -linkmode=internal' '-v",
	} {
		got := Linking(text, "-s -linkmode=internal")
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		command := exec.Command("go", "list", "errors")
		command.Env = append(os.Environ(), "GOFLAGS="+got)
		if out, err := command.CombinedOutput(); (err == nil) != (text != "'-v") {
			t.Errorf("%q: the go command says %s (%v)", got, out, err)
		}
	}
}

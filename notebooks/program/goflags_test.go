package program

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestSplitFlags(t *testing.T) {
	for text, want := range map[string][]string{
		"":                         nil,
		" -v  -x ":                 {"-v", "-x"},
		"'-ldflags=-s -w' -v":      {"-ldflags=-s -w", "-v"},
		`"-toolexec=/a b/it's" -v`: {"-toolexec=/a b/it's", "-v"},
	} {
		got, err := splitFlags(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
			continue
		}
		joined, err := joinFlags(got)
		if again, _ := splitFlags(joined); err != nil || !slices.Equal(again, want) {
			t.Errorf("%q: joined to %q, %v", text, joined, err)
		}
	}
	if _, err := splitFlags("-v '-ldflags=-s"); err == nil || !strings.Contains(err.Error(), "closing '") {
		t.Errorf("an open quote: error %v", err)
	}
	if _, err := joinFlags([]string{`-x='"`}); err == nil {
		t.Error("both quotes: no error")
	}
}

func TestInWorkspace(t *testing.T) {
	for text, want := range map[string]string{
		"-mod=mod '-ldflags=-X a=b c' --modfile=/x y": "'-ldflags=-X a=b c' y",
		"'-modfile=/a b' -modcacherw":                 "-modcacherw",
		"-v '-mod=x":                                  "-v '-mod=x",
	} {
		if got := InWorkspace(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The go command reads what Linking makes: it fails on those that it cannot.
func TestLinking(t *testing.T) {
	for text, want := range map[string]string{
		"":   "'-ldflags=-s -linkmode=internal'",
		"-v": "'-ldflags=-s -linkmode=internal' -v",
		"-ldflags=-w '-ldflags=-X a.b=c -linkmode=external' -v": "" +
			"'-ldflags=-s -linkmode=internal -X a.b=c -linkmode=external' -v",
		`"--ldflags=-X 'a.b=c d'"`: `"-ldflags=-s -linkmode=internal -X 'a.b=c d'"`,
		"-ldflags=all=-w '-gcflags=all=-N -l'": "'-ldflags=-s -linkmode=internal' -ldflags=all=-w " +
			"'-gcflags=all=-N -l'",
		"'-v": "'-v",
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

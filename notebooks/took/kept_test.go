package took

import (
	"path/filepath"
	"testing"
)

// What spares a notebook work is its own runs and repetitions of its papers' studies, not those of others.
func TestKept(t *testing.T) {
	root := t.TempDir()
	notebook := filepath.Join(root, "n.ipynb")
	write(t, notebook, `{"cells": [{"cell_type": "code", "source": ["figure(\"ohsmc.fig1\")"]}]}`)
	for _, c := range []struct {
		file string // in the cache folder; "": it is empty
		want bool
	}{
		{"", false},
		{"results/pbnn.fig3/a/1.json", false},
		{"other/run.safetensors", false},
		{"results/ohsmc.table8/yacht/1.json", true},
		{"n/run.safetensors", true},
	} {
		cache := filepath.Join(t.TempDir(), "my [cache]")
		if c.file != "" {
			write(t, filepath.Join(cache, c.file), "{}")
		}
		if got, err := Kept(cache, notebook); err != nil || got != c.want {
			t.Errorf("with %q: %v, %v", c.file, got, err)
		}
	}
}

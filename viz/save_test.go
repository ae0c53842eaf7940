package viz_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/viz"
)

func TestSave(t *testing.T) {
	fig := computetest.Must(calibration())
	folder := t.TempDir()
	for _, name := range []string{"a.png", "a.SVG"} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := fig.Save(path); err != nil {
			t.Fatal(err)
		}
		data := computetest.Must(os.ReadFile(path))
		want := map[string]string{".png": "\x89PNG", ".SVG": "<?xml"}[filepath.Ext(name)]
		if !bytes.HasPrefix(data, []byte(want)) {
			t.Errorf("%s starts with %q, want %q", name, data[:8], want)
		}
	}
	entries := computetest.Must(os.ReadDir(folder))
	if len(entries) != 2 {
		t.Errorf("folder has %d files after saving two: temporary files stay behind", len(entries))
	}

	file := filepath.Join(folder, "a.png")
	for path, wants := range map[string][]string{
		filepath.Join(folder, "a.jpg"):         {`".jpg"`, ".png, .svg or .pdf"},
		filepath.Join(folder, "a"):             {`""`, ".png, .svg or .pdf"},
		filepath.Join(folder, "no", "fig.png"): {"must exist", filepath.Join(folder, "no")},
		filepath.Join(file, "fig.png"):         {"a.png"},
	} {
		err := fig.Save(path)
		if err == nil {
			t.Errorf("Save(%q) gives no error", path)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Save(%q): error %q does not say %q", path, err, want)
			}
		}
	}
}

// TestSaveUnwritable replaces a file by a folder, on which the last step of saving fails for every user.
func TestSaveUnwritable(t *testing.T) {
	fig := computetest.Must(calibration())
	folder := t.TempDir()
	taken := filepath.Join(folder, "taken.png")
	if err := os.MkdirAll(filepath.Join(taken, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := fig.Save(taken); err == nil || !strings.Contains(err.Error(), "taken.png") {
		t.Errorf("saving over a folder: error %v", err)
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 {
		t.Errorf("a failed Save leaves %d files", len(entries)-1)
	}
}

// A figure that there is none of, and one outside a notebook, are not shown.
func TestNoFigure(t *testing.T) {
	var missing *viz.Figure
	_, err := missing.SVG()
	if saved := missing.Save("a.png"); saved == nil || err == nil {
		t.Errorf("no figure: %v, %v", saved, err)
	}
	fig := computetest.Must(calibration())
	for _, err := range []error{fig.Show(), viz.ShowFile("figure.png"), viz.Markdown("*text*")} {
		if !errors.Is(err, viz.ErrNotNotebook) || !strings.Contains(err.Error(), "Save") {
			t.Errorf("outside a notebook: error %v, want ErrNotNotebook with the way out", err)
		}
	}
}

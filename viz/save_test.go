package viz_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gobnn/bayes/compute/computetest"
	"gobnn/viz"
)

func TestSave(t *testing.T) {
	fig := computetest.Must(calibration())
	folder := t.TempDir()
	for _, name := range []string{"a.png", "a.SVG", "a.pdf"} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := fig.Save(path); err != nil {
			t.Fatal(err)
		}
		data := computetest.Must(os.ReadFile(path))
		want := map[string]string{".png": "\x89PNG", ".SVG": "<?xml", ".pdf": "%PDF-"}[filepath.Ext(name)]
		if !bytes.HasPrefix(data, []byte(want)) {
			t.Errorf("%s starts with %q, want %q", name, data[:8], want)
		}
	}
	entries := computetest.Must(os.ReadDir(folder))
	if len(entries) != 3 {
		t.Errorf("folder has %d files after saving three: temporary files stay behind", len(entries))
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

// TestSaveUnwritable replaces a file by a folder, on which the last step of saving fails for every user, and closes a
// folder, which stops all but root.
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
	if os.Geteuid() == 0 {
		t.Skip("root may write to any folder")
	}
	closed := filepath.Join(folder, "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	err := fig.Save(filepath.Join(closed, "a.png"))
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), closed) {
		t.Errorf("saving into a read-only folder: error %v", err)
	}
}

// A PDF is one page with its fonts, and has the same bytes each time.
func TestPDF(t *testing.T) {
	fig := computetest.Must(calibration())
	first := computetest.Must(fig.PDF())
	time.Sleep(1100 * time.Millisecond) // dates in a PDF are in seconds
	second, err := fig.PDF()
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("another PDF of the same figure (%v)", err)
	}
	if pages := bytes.Count(first, []byte("/Type /Page\n")); pages != 1 {
		t.Errorf("%d pages, want 1", pages)
	}
	for _, want := range []string{"/FontFile2", "/MediaBox [0 0 390.00 390.00]"} { // 520 CSS pixels are 390 points
		if !bytes.Contains(first, []byte(want)) {
			t.Errorf("the PDF has no %s", want)
		}
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

package study

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tables that notebooks show are those of RESULTS.md, as they are recorded now.
func TestNotebooksShowWhatIsRecorded(t *testing.T) {
	calls := regexp.MustCompile(`study\.Recorded\("([^"]+)"((?:,\s*"[^"]+")*)\)`)
	quoted := regexp.MustCompile(`"([^"]+)"`)
	paths, err := filepath.Glob("../*.ipynb")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		text := must(os.ReadFile(path))
		var notebook struct {
			Cells []struct {
				Source  []string
				Outputs []struct{ Data map[string]any }
			}
		}
		if err := json.Unmarshal(text, &notebook); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for i, cell := range notebook.Cells {
			var shown []string
			for _, o := range cell.Outputs {
				if lines, ok := o.Data["text/markdown"].([]any); ok {
					var all strings.Builder
					for _, line := range lines {
						all.WriteString(line.(string))
					}
					shown = append(shown, strings.TrimSpace(all.String()))
				}
			}
			for _, call := range calls.FindAllStringSubmatch(strings.Join(cell.Source, ""), -1) {
				var metrics []string
				for _, m := range quoted.FindAllStringSubmatch(call[2], -1) {
					metrics = append(metrics, m[1])
				}
				want, err := recordedText(call[1], metrics)
				if err != nil {
					t.Errorf("%s, cell %d: %v", path, i+1, err)
				} else if !slices.Contains(shown, strings.TrimSpace(want)) {
					t.Errorf("%s, cell %d does not show what is recorded of %s: execute it again", path, i+1, call[1])
				}
			}
		}
	}
}

func TestRecordedText(t *testing.T) {
	text := must(recordedText("ohsmc.table1", []string{"NLPD"}))
	for _, want := range []string{"## ohsmc.table1\n\n1-d regression", "| NLPD | MAP-HMC | OHSMC |", "measured at "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "particle RMSE |") {
		t.Errorf("a metric that was not asked for is shown:\n%s", text)
	}
	for want, c := range map[string]struct {
		id      string
		metrics []string
	}{
		"no study": {"ohsmc.table99", nil}, "nothing is recorded of ohsmc.fig3": {"ohsmc.fig3", nil},
		"no metric \"NLPDD\"": {"ohsmc.table1", []string{"NLPDD"}},
	} {
		if _, err := recordedText(c.id, c.metrics); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}

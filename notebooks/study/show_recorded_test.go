package study

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gobnn/notebooks/results"
)

// shownIn calls check with each call of a study in the code of notebooks that the pattern finds, and the texts that its
// cell displays.
func shownIn(pattern string, check func(cell string, call []string, shown []string)) {
	calls := regexp.MustCompile(pattern)
	for _, path := range must(filepath.Glob("../*.ipynb")) {
		var notebook struct {
			Cells []struct {
				Source  []string
				Outputs []struct{ Data map[string]any }
			}
		}
		failOn(json.Unmarshal(must(os.ReadFile(path)), &notebook))
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
				check(fmt.Sprintf("%s, cell %d", path, i+1), call, shown)
			}
		}
	}
}

// The tables that notebooks show are those of RESULTS.md, as they are recorded now: TABLES=write puts these in, as
// executing the notebooks would.
func TestNotebooksShowWhatIsRecorded(t *testing.T) {
	count, quoted := 0, regexp.MustCompile(`"([^"]+)"`)
	write := os.Getenv("TABLES") == "write"
	shownIn(`study\.Recorded\("([^"]+)"((?:,\s*"[^"]+")*)\)`, func(cell string, call, shown []string) {
		count++
		var metrics []string
		for _, m := range quoted.FindAllStringSubmatch(call[2], -1) {
			metrics = append(metrics, m[1])
		}
		e, cells := must(Find(call[1])), must(readRecords(results.Files)).Cells(call[1])
		if caption := must(e.caption(cells)); e.plots(metrics) && !slices.Contains(shown, caption) {
			t.Errorf("%s does not show the picture %q of what is recorded: execute it again", cell, caption)
		}
		want, err := recordedText(call[1], metrics)
		if err != nil {
			t.Errorf("%s: %v", cell, err)
		} else if !slices.Contains(shown, strings.TrimSpace(want)) {
			head := regexp.MustCompile(`^##+ ` + regexp.QuoteMeta(call[1]) + `\b`)
			if i := slices.IndexFunc(shown, head.MatchString); write && i >= 0 {
				path, _, _ := strings.Cut(cell, ",")
				replaceText(path, shown[i], strings.TrimSpace(want))
			} else {
				t.Errorf("%s does not show what is recorded of %s: execute it again, or set TABLES=write", cell, call[1])
			}
		}
	})
	if count == 0 {
		t.Error("no notebook shows a record")
	}
}

// replaceText puts a text in the place of another that is displayed in a notebook.
func replaceText(path, was, is string) {
	raw := string(must(os.ReadFile(path)))
	lines := func(text string) string {
		var all []string
		for line := range strings.SplitAfterSeq(text, "\n") {
			var b strings.Builder
			encoder := json.NewEncoder(&b)
			encoder.SetEscapeHTML(false)
			failOn(encoder.Encode(line))
			all = append(all, "       "+strings.TrimSpace(b.String()))
		}
		return strings.TrimSuffix(strings.Join(all, ",\n"), `"`) // a line may end there
	}
	if n := strings.Count(raw, lines(was)); n != 1 {
		panic(fmt.Errorf("%s has %d times the text %.60q", path, n, was))
	}
	failOn(os.WriteFile(path, []byte(strings.Replace(raw, lines(was), lines(is), 1)), 0o644))
}

// The pictures that notebooks show are those of their studies: of the same settings, and as they are drawn now.
func TestNotebooksShowPictures(t *testing.T) {
	count := 0
	shownIn(`study\.Show\("([^"]+)"`, func(cell string, call, shown []string) {
		count++
		e := must(Find(call[1]))
		if caption := must(e.caption(nil)); e.draw != nil && !slices.Contains(shown, caption) {
			t.Errorf("%s does not show the picture %q: execute it again", cell, caption)
		}
	})
	if count == 0 {
		t.Error("no notebook shows a picture")
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

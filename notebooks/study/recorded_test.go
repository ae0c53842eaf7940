package study

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// RESULTS.md is what the project's records give, and each of their numbers says at which commit it was recorded.
func TestResultsAreRendered(t *testing.T) {
	records := must(OpenRecords(filepath.Join("..", "..")))
	failOn(records.Check())
	for _, s := range records.studies {
		must(Find(s.Study))
		for _, c := range s.Cells {
			if measured := c.Reps != 0 || c.Ours != nil || c.Commit != ""; measured && (len(c.Commit) < 7 || c.Reps < 1) {
				t.Errorf("%s, %s, %s, %s: %d repetitions, at commit %q", s.Study, c.Data, c.Method, c.Metric, c.Reps, c.Commit)
			}
		}
	}
}

// Cells that are recorded again take the place of those before, with all metrics of their method, others stay, and all
// come back from the files as they were.
func TestRecord(t *testing.T) {
	root := t.TempDir()
	records := must(OpenRecords(root))
	paper := 1.1
	cell := func(data, method string, ours, se float64, reps int) Cell {
		return Cell{Study: "ohsmc.table8", Data: data, Method: method, Metric: "NLPD", Ours: ours, SE: se, Reps: reps,
			Paper: &paper}
	}
	old := cell("boston", "OHSMC", 7, .5, 2)
	old.Metric = "of old"
	of := Experiment{ID: "ohsmc.table8", trials: func(Options) ([]*trial, error) { return nil, nil }}
	failOn(records.Record(of, Options{}, []Cell{old, cell("boston", "OHSMC", 1, .5, 2),
		cell("boston", "VB", math.Inf(1), math.NaN(), 2),
		cell("yacht", "OHSMC", 3, math.NaN(), 1)}, "0000000"))
	failOn(records.Save())
	records = must(OpenRecords(root))
	other := cell("boston", "OHSMC", 4, math.NaN(), 10)
	other.Metric = "other"
	failOn(records.Record(of, Options{}, []Cell{cell("boston", "OHSMC", 2, .25, 10), other}, "1111111, 0000000"))
	failOn(records.Save())
	records = must(OpenRecords(root))
	failOn(records.Check())
	text := records.pages()["results/ohsmc.md"]
	if strings.Contains(text, "of old") {
		t.Error("a metric that is no longer there stays")
	}
	for _, want := range []string{
		"\n## ohsmc.table8\n\nUCI: ", "| Boston | OHSMC | 10 | 2.000 ± 0.250 | 1.10 | 4.000 |",
		"|  | VB | 2 | diverged | 1.10 |  |",
		"| yacht | OHSMC | 1 | 3.000 | 1.10 |  |", "\nmeasured at 1111111, 0000000.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}

	failOn(os.WriteFile(filepath.Join(root, "notebooks", "results", "ohsmc.md"), []byte(text+"1"), 0o644))
	if err := records.Check(); err == nil || !strings.Contains(err.Error(), "reproduce -record") {
		t.Errorf("error %v for a page that was edited, want one that says how to write it", err)
	}
	if err := os.WriteFile(filepath.Join(root, "notebooks", "results", "other.json"), []byte(`{"study": "ohsmc.table1"}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRecords(root); err == nil || !strings.Contains(err.Error(), "other.json") {
		t.Errorf("error %v for a file of another study, want one that names it", err)
	}
}

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
		if _, err := Find(s.Study); err != nil && s.Title == "" {
			t.Errorf("%s: neither in the catalogue nor with a title", s.Study)
		}
		for _, c := range s.Cells {
			if measured := c.Reps != 0 || c.Ours != nil || c.Commit != ""; measured && (len(c.Commit) < 7 || c.Reps < 1) {
				t.Errorf("%s, %s, %s, %s: %d repetitions, at commit %q", s.Study, c.Data, c.Method, c.Metric, c.Reps, c.Commit)
			}
		}
		for _, r := range s.Remarks {
			if len(r.Commit) < 7 || r.Text == "" {
				t.Errorf("%s: remark %q at commit %q", s.Study, r.Text, r.Commit)
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
	of := Experiment{ID: "ohsmc.table8"}
	failOn(records.Record(of, Options{}, []Cell{old, cell("boston", "OHSMC", 1, .5, 2),
		cell("boston", "VB", math.Inf(1), math.NaN(), 2),
		cell("yacht", "OHSMC", 3, math.NaN(), 1)}, "0000000"))
	failOn(records.Save())
	records = must(OpenRecords(root))
	failOn(records.Record(of, Options{}, []Cell{cell("boston", "OHSMC", 2, .25, 10)}, "1111111"))
	failOn(records.Save())
	records = must(OpenRecords(root))
	failOn(records.Check())
	text := records.Markdown()
	if strings.Contains(text, "of old") {
		t.Error("a metric that is no longer there stays")
	}
	for _, want := range []string{
		"### ohsmc.table8: UCI: ", "five classifications | 0 | 1 | 1 |\n",
		"| Boston | 2.000 ± 0.250 (1.10) | diverged (1.10) |", "| yacht | 3.000 (1.10) |",
		"10 repetitions, at `1111111`: Boston (OHSMC). 2 repetitions, at `0000000`: Boston (VB). One repetition, at " +
			"`0000000`: yacht.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}

	failOn(os.WriteFile(filepath.Join(root, "notebooks", "RESULTS.md"), []byte(text+"1"), 0o644))
	if err := records.Check(); err == nil || !strings.Contains(err.Error(), "reproduce -record") {
		t.Errorf("error %v for a RESULTS.md that was edited, want one that says how to write it", err)
	}
	if err := os.WriteFile(filepath.Join(root, "notebooks", "results", "other.json"), []byte(`{"study": "ohsmc.table1"}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRecords(root); err == nil || !strings.Contains(err.Error(), "other.json") {
		t.Errorf("error %v for a file of another study, want one that names it", err)
	}
}

// What there was nothing to measure on is said to be so, with the paper's number, and has no commit below the table.
func TestNotMeasured(t *testing.T) {
	ours, paper := 1.4, .8
	s := recorded{Study: "speed.devices", Cells: []recordedCell{
		{Data: "a step", Method: "CPU", Metric: "milliseconds", Ours: &ours, Reps: 1, Commit: "0000000"},
		{Data: "a step", Method: "GPU", Metric: "milliseconds", Paper: &paper},
	}}
	var out strings.Builder
	s.markdown(&out, "")
	for _, want := range []string{"| a step | 1.400 | not measured (0.80) |", "\nOne repetition, at `0000000`.\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
}

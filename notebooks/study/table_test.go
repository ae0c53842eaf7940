package study

import (
	"math"
	"strings"
	"testing"
)

// A loss that is not finite has diverged, another score that is not is unknown, and without repetitions nothing was
// measured: in the tables of a run, and in those of the records that it leaves, which keep neither NaN nor infinity.
func TestMissing(t *testing.T) {
	var cells []Cell
	for _, c := range []struct {
		metric string
		ours   float64
		reps   int
		want   string
	}{
		{"NLPD", math.Inf(1), 2, "diverged"}, {"test loss", math.Inf(1), 1, "diverged"}, {"RMSE", math.NaN(), 1, "diverged"},
		{"k-hat", math.Inf(1), 1, "-"}, {"k-hat, largest of the splits", math.NaN(), 1, "-"},
		{"standard error of log Z that a repetition states", math.NaN(), 2, "-"}, {"seconds", math.NaN(), 0, "not measured"},
	} {
		cell := Cell{Study: "pmcnet.table10", Data: "protein", Method: "PMCnet-light", Metric: c.metric, Ours: c.ours,
			SE: math.Inf(1), Reps: c.reps}
		cells = append(cells, cell)
		want := "| protein | " + c.want + " |\n"
		if got := Matrix([]Cell{cell}, c.metric); !strings.HasSuffix(got, want) {
			t.Errorf("%s of %v: %s, want %q", c.metric, c.ours, got, want)
		}
		text := Text([]Cell{cell})
		if !strings.Contains(text, c.want) || strings.Contains(text, "Inf") || strings.Contains(text, "NaN") {
			t.Errorf("%s, %v: %s, want %q", c.metric, c.ours, text, c.want)
		}
	}
	root := t.TempDir()
	records := must(OpenRecords(root))
	failOn(records.Record(must(Find("pmcnet.table10")), Options{CacheDir: t.TempDir()}, cells, "0000000"))
	failOn(records.Save())
	again := must(OpenRecords(root)).Cells("pmcnet.table10")
	for _, c := range cells {
		if got, want := Matrix(again, c.Metric), Matrix(cells, c.Metric); got != want {
			t.Errorf("the record of %s is\n%s, want as a run prints it,\n%s", c.Metric, got, want)
		}
	}
}

package study

import (
	"fmt"
	"strings"

	"gobnn/bayes/run"
	"gobnn/notebooks/results"
	"gobnn/viz"
)

// Recorded displays in a notebook what is recorded of a table in the project: the verdicts, and our numbers beside the
// paper's, as the pages of results have them, of some metrics where these are named. Nothing is computed: Show does
// that. An error stops the cell.
func Recorded(id string, metrics ...string) {
	text, err := recordedText(id, metrics)
	if err == nil {
		err = viz.Markdown(text)
	}
	if err != nil {
		run.Fail(err)
	}
}

// recordedText is what Recorded displays.
func recordedText(id string, metrics []string) (text string, err error) {
	defer caught(&err)
	e, records := must(Find(id)), must(readRecords(results.Files))
	cells := records.Cells(id)
	if len(cells) == 0 {
		return "", fmt.Errorf("nothing is recorded of %s: go run ./notebooks reproduce %s -record computes it", id, id)
	}
	if len(metrics) > 0 {
		known := distinct(cells, func(c Cell) string { return c.Metric })
		if metrics, err = chosen("metric", metrics, known); err != nil {
			return "", fmt.Errorf("%s: %w", id, err)
		}
	}
	var out strings.Builder
	records.section(&out, e, metrics...)
	return strings.TrimLeft(out.String(), "\n"), nil
}

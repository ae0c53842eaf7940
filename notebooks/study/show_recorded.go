package study

import (
	"fmt"
	"slices"
	"strings"

	"gobnn/bayes/run"
	"gobnn/notebooks/results"
	"gobnn/viz"
)

// Recorded displays in a notebook what is recorded of a table in the project: the verdicts, and our numbers beside the
// paper's, as the pages of results have them, of some metrics where these are named; and the figure, where these are
// all that it shows. Nothing is computed: Show does that. An error stops the cell.
func Recorded(id string, metrics ...string) {
	if err := showRecorded(id, metrics); err != nil {
		run.Fail(err)
	}
}

func showRecorded(id string, metrics []string) (err error) {
	defer caught(&err)
	failOn(viz.Markdown(must(recordedText(id, metrics))))
	e, cells := must(Find(id)), must(readRecords(results.Files)).Cells(id)
	if !e.plots(metrics) {
		return nil
	}
	failOn(must(e.plot(cells)).Show())
	return viz.Markdown(must(e.caption(cells)))
}

// plots says whether the figure is of cells, of which these metrics, or with none all, are displayed.
func (e Experiment) plots(metrics []string) bool {
	return e.plot != nil && (len(metrics) == 0 || slices.Contains(metrics, e.plotted))
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

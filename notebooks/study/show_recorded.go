package study

import (
	"fmt"
	"slices"
	"strings"

	"gobnn/bayes/run"
	"gobnn/notebooks/results"
	"gobnn/viz"
)

// Recorded displays in a notebook what is recorded of a table in the project: the numbers of RESULTS.md, ours beside
// the paper's in brackets, with what was reduced, how often it was repeated, and what we make of it. Nothing is
// computed: Show does that. Of several metrics each is a table of its own; without any all of them are shown. An error
// stops the cell.
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
func recordedText(id string, metrics []string) (string, error) {
	e, err := Find(id)
	if err != nil {
		return "", err
	}
	studies, err := readRecords(results.Files)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(studies, func(s recorded) bool { return s.Study == id })
	if i < 0 {
		return "", fmt.Errorf("nothing is recorded of %s: go run ./notebooks reproduce %s -record computes it", id, id)
	}
	s := studies[i]
	known := distinct(s.Cells, func(c recordedCell) string { return c.Metric })
	if metrics, err = chosen("metric", metrics, known); err != nil {
		return "", fmt.Errorf("%s: %w", id, err)
	}
	s.Cells = slices.DeleteFunc(slices.Clone(s.Cells), func(c recordedCell) bool {
		return !slices.Contains(metrics, c.Metric)
	})
	s.Title = e.Title
	var out strings.Builder
	s.markdown(&out, e.Note)
	return strings.TrimLeft(out.String(), "\n"), nil
}

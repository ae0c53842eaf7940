// Package took knows how long studies and notebooks take: what was recorded with the committed results. It links none
// of the samplers.
package took

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"gobnn/notebooks/execute"
)

// Times are the recorded times of studies, by row.
type Times map[Row]Cost

// Row is one method on one data set of a study.
type Row struct{ Study, Data, Method string }

// Cost is the total time of a row's repetitions on the machine that recorded them.
type Cost struct {
	Seconds     float64
	Repetitions int
}

// Recorded returns the rows of a folder of results, such as results.Files.
func Recorded(results fs.FS) (Times, error) {
	paths, err := fs.Glob(results, "*.json")
	if err != nil {
		return nil, fmt.Errorf("recorded times: %w", err)
	}
	rows := Times{}
	for _, path := range paths {
		text, err := fs.ReadFile(results, path)
		if err != nil {
			return nil, fmt.Errorf("recorded times: %w", err)
		}
		var s struct {
			Study string `json:"study"`
			Cells []struct {
				Data    string  `json:"data"`
				Method  string  `json:"method"`
				Reps    int     `json:"reps"`
				Seconds float64 `json:"seconds"`
			} `json:"cells"`
		}
		if err := json.Unmarshal(text, &s); err != nil {
			return nil, fmt.Errorf("recorded times: %s: %w", path, err)
		}
		for _, c := range s.Cells {
			if c.Seconds > 0 && c.Reps > 0 { // the cells of a row repeat its seconds
				rows[Row{s.Study, c.Data, c.Method}] = Cost{c.Seconds, c.Reps}
			}
		}
	}
	return rows, nil
}

// Repetition is the mean seconds of a row's repetitions; 0: nothing is recorded.
func (rows Times) Repetition(study, data, method string) float64 {
	cost := rows[Row{study, data, method}]
	return cost.Seconds / float64(max(1, cost.Repetitions))
}

// Study sums the seconds of a study's rows; 0: nothing is recorded. Methods that took the same seconds on the same data
// belong to one run, such as its several estimates, and count once.
func (rows Times) Study(id string) (seconds float64) {
	type run struct {
		data string
		cost Cost
	}
	counted := map[run]bool{}
	for row, cost := range rows {
		if one := (run{row.Data, cost}); row.Study == id && !counted[one] {
			counted[one] = true
			seconds += cost.Seconds
		}
	}
	return seconds
}

var studyName = regexp.MustCompile(`"((?:pmcnet|ohsmc|gohsmc|fbnn|pbnn)\.[A-Za-z0-9.]+)\\?"`)

// Notebook sums the recorded seconds of the studies that a notebook's cells name. This only estimates its time from
// nothing: a cell may ask for a part of a study, or compute something else. untimed lists the studies without a
// recorded time, which may take longer than all others.
func (rows Times) Notebook(path string) (seconds float64, untimed []string, err error) {
	named, err := studiesOf(path)
	for _, id := range named {
		one := rows.Study(id)
		if seconds += one; one == 0 {
			untimed = append(untimed, id)
		}
	}
	return seconds, untimed, err
}

// studiesOf returns the studies that a notebook's cells name.
func studiesOf(path string) (named []string, err error) {
	cells, err := execute.Sources(path, "code")
	if err != nil {
		return nil, err
	}
	for _, source := range cells {
		for _, found := range studyName.FindAllStringSubmatch(source, -1) {
			if !slices.Contains(named, found[1]) {
				named = append(named, found[1])
			}
		}
	}
	return named, nil
}

// Text is a time in words: to the second below two minutes, to the minute below two hours.
func Text(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case seconds < 10:
		return fmt.Sprintf("%.1f s", seconds)
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", seconds)
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	default:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
}

// Line says what is recorded of a study's or a notebook's time; empty: nothing. untimed are the studies of a notebook
// that it leaves out.
func Line(recorded float64, untimed ...string) string {
	if recorded == 0 {
		return ""
	}
	text := "what is recorded took " + Text(recorded) + " from nothing"
	if len(untimed) > 0 {
		text += ", without " + strings.Join(untimed, ", ") + ", which are not timed yet"
	}
	return text
}

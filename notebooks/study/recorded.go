package study

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// Records are the results that are committed: a JSON file for each study in notebooks/results, and
// notebooks/RESULTS.md, which is rendered from them. The repetitions themselves stay in the cache (Store).
type Records struct {
	folder  string // of the JSON files
	file    string // RESULTS.md
	studies []recorded
}

// recorded is a file: the cells of a study, each with the commit that it was measured at, what it takes to compute its
// rows again, and remarks. A study outside the catalogue has its own title.
type recorded struct {
	Study   string         `json:"study"`
	Title   string         `json:"title,omitempty"`
	Cells   []recordedCell `json:"cells,omitempty"`
	Rows    []rowRecord    `json:"rows,omitempty"`
	Remarks []remark       `json:"remarks,omitempty"`
}

// recordedCell is a Cell without its study. Nil is unknown or not finite. No repetitions: it was not measured, since
// there was nothing to measure it on.
type recordedCell struct {
	Data    string   `json:"data"`
	Method  string   `json:"method"`
	Metric  string   `json:"metric"`
	Ours    *float64 `json:"ours"`
	SE      *float64 `json:"se"`
	Reps    int      `json:"reps"`
	Paper   *float64 `json:"paper,omitempty"`
	PaperSE *float64 `json:"paper_se,omitempty"`
	Seconds *float64 `json:"seconds,omitempty"`
	Commit  string   `json:"commit"`
}

// remark is a measurement besides the cells, in words.
type remark struct {
	Text   string `json:"text"`
	Commit string `json:"commit"`
}

// OpenRecords reads the records of the project in the folder root.
func OpenRecords(root string) (*Records, error) {
	r := &Records{folder: filepath.Join(root, "notebooks", "results"),
		file: filepath.Join(root, "notebooks", "RESULTS.md")}
	var err error
	r.studies, err = readRecords(os.DirFS(r.folder))
	return r, err
}

// readRecords reads the studies of a folder of results.
func readRecords(folder fs.FS) (studies []recorded, err error) {
	names, err := fs.Glob(folder, "*.json")
	if err != nil {
		return nil, fmt.Errorf("recorded results: %w", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("recorded results: %w", err)
		}
		var s recorded
		if err := json.Unmarshal(text, &s); err != nil {
			return nil, fmt.Errorf("recorded results: %s: %w", name, err)
		}
		if name := strings.TrimSuffix(name, ".json"); s.Study != name {
			return nil, fmt.Errorf("recorded results: %s.json is of study %q: name it %s.json", name, s.Study, s.Study)
		}
		studies = append(studies, s)
	}
	return studies, nil
}

// Record puts in the cells of an experiment that ran with the options, measured at their own commit or else at the
// given one, in place of those with the same data set, method and metric. A metric that a method no longer has on a
// data set, such as one that only some results have, goes.
func (r *Records) Record(e Experiment, o Options, cells []Cell, commit string) error {
	rows, err := e.rows(o)
	if err != nil {
		return err
	}
	type group struct{ study, data, method string }
	metrics := map[group][]string{}
	for _, c := range cells {
		g := group{c.Study, c.Data, c.Method}
		metrics[g] = append(metrics[g], c.Metric)
	}
	for i := range r.studies {
		s := &r.studies[i]
		s.Cells = slices.DeleteFunc(s.Cells, func(o recordedCell) bool {
			now := metrics[group{s.Study, o.Data, o.Method}]
			return len(now) > 0 && !slices.Contains(now, o.Metric)
		})
	}
	for _, c := range cells {
		cell := recordedCell{
			Data: c.Data, Method: c.Method, Metric: c.Metric, Ours: finite(&c.Ours), SE: finite(&c.SE), Reps: c.Reps,
			Paper: finite(c.Paper), PaperSE: finite(c.PaperSE), Seconds: finite(&c.Seconds), Commit: cmp.Or(c.Commit, commit),
		}
		i := slices.IndexFunc(r.studies, func(s recorded) bool { return s.Study == c.Study })
		if i < 0 {
			i = len(r.studies)
			r.studies = append(r.studies, recorded{Study: c.Study})
		}
		s := &r.studies[i]
		same := func(o recordedCell) bool {
			return o.Data == cell.Data && o.Method == cell.Method && o.Metric == cell.Metric
		}
		if k := slices.IndexFunc(s.Cells, same); k >= 0 {
			s.Cells[k] = cell
		} else {
			s.Cells = append(s.Cells, cell)
		}
	}
	if i := slices.IndexFunc(r.studies, func(s recorded) bool { return s.Study == e.ID }); i >= 0 {
		r.studies[i].put(rows)
	}
	return nil
}

// put puts in rows, in place of those with the same data set and method.
func (s *recorded) put(rows []rowRecord) {
	for _, now := range rows {
		k := slices.IndexFunc(s.Rows, func(was rowRecord) bool { return was.Data == now.Data && was.Method == now.Method })
		if k < 0 {
			s.Rows = append(s.Rows, now)
			continue
		}
		if verified := s.Rows[k].Verified; s.Rows[k].same(now) {
			now.Verified = verified
		}
		s.Rows[k] = now
	}
}

// Save writes the files, and RESULTS.md.
func (r *Records) Save() error {
	if err := os.MkdirAll(r.folder, 0o755); err != nil {
		return fmt.Errorf("record results: %w", err)
	}
	for _, s := range r.studies {
		if err := renameio.WriteFile(filepath.Join(r.folder, s.Study+".json"), s.text(), 0o644); err != nil {
			return fmt.Errorf("record results: %w", err)
		}
	}
	if err := renameio.WriteFile(r.file, []byte(r.Markdown()), 0o644); err != nil {
		return fmt.Errorf("record results: %w", err)
	}
	return nil
}

// text is the file: JSON, with a line for each cell, row and remark.
func (s recorded) text() []byte {
	var out bytes.Buffer
	line := func(value any) []byte { return must(json.Marshal(value)) }
	fmt.Fprintf(&out, "{\n \"study\": %s", line(s.Study))
	if s.Title != "" {
		fmt.Fprintf(&out, ",\n \"title\": %s", line(s.Title))
	}
	lines(&out, "cells", s.Cells, line)
	lines(&out, "rows", s.Rows, line)
	lines(&out, "remarks", s.Remarks, line)
	out.WriteString("\n}\n")
	return out.Bytes()
}

// lines writes a field of JSON with the items of a list, a line each; none of an empty list.
func lines[T any](out *bytes.Buffer, name string, items []T, line func(any) []byte) {
	for i, item := range items {
		separator := ","
		if i == 0 {
			separator = fmt.Sprintf(",\n %q: [", name)
		}
		fmt.Fprintf(out, "%s\n  %s", separator, line(item))
	}
	if len(items) > 0 {
		out.WriteString("\n ]")
	}
}

// Check returns an error unless RESULTS.md equals what the records render to.
func (r *Records) Check() error {
	text, err := os.ReadFile(r.file)
	if err != nil {
		return fmt.Errorf("rendered results: %w", err)
	}
	if string(text) != r.Markdown() {
		return errors.New("notebooks/RESULTS.md is not what notebooks/results gives; " +
			"write it with: go run ./notebooks reproduce -record")
	}
	return nil
}

const resultsHead = `# Results

Our numbers beside those of the five papers, study by study. Each study has an ID, such as ohsmc.table8:
` + "`go run ./notebooks reproduce ID`" + ` computes it again.

How to read a table:

- A cell is our mean over repetitions ± its standard error, and in brackets what the paper reports. Without ± there
  is one repetition. "diverged" is a loss that became infinite, "-" a number that is not known.
- Lower is better for NLPD (the mean of -log p(y | x) over the test rows), CRPS, RMSE, MSE, test loss, ECE (expected
  calibration error), Brier, the width of intervals and their interval score; higher for accuracy and AUC. Coverage
  should be its level. ESS is the effective sample size. k-hat is the tail of importance weights: above 0.7 they
  estimate nothing.
- "particle RMSE" is the mean over particles of each one's own error, which is how some of the papers count; "RMSE" is
  the error of the predictive mean.
- Scores of UCI regressions are in units of the target's standard deviation. In the target's own units are the test
  loss of gohsmc and all scores of fbnn.
- First stands what we make of a study, with the commit that it was measured at; then what is reduced or differs from
  the paper, in brackets with flags that undo it, such as -full; then the tables. The line below them has the number of
  repetitions, and the commit that they were measured at.

The tables are written from the files in [results](results) by ` + "`go run ./notebooks reproduce -record`" + `, which
without an ID renders them again, and with one also puts in what the study computes.

## All studies

Of the numbers that stand beside a paper's: how many agree with it, within two standard errors of their difference, how
many differ by more, which may be to either side, and how many have no standard error to judge by.

| study | what it shows | agree | differ | not judged |
| --- | --- | ---: | ---: | ---: |
`

// Markdown is RESULTS.md: a page of all studies, then the catalogue's paper by paper, and the others.
func (r *Records) Markdown() string {
	var out, index strings.Builder
	left := slices.Clone(r.studies)
	for _, paper := range Papers {
		headed := false
		for _, s := range All() {
			i := slices.IndexFunc(left, func(r recorded) bool { return r.Study == s.ID })
			if s.Paper() != paper.Name || i < 0 {
				continue
			}
			if !headed {
				fmt.Fprintf(&out, "\n## %s\n", paper.Title)
			}
			headed = true
			left[i].Title = s.Title
			left[i].markdown(&out, s.Note)
			index.WriteString(left[i].line())
			left = slices.Delete(left, i, i+1)
		}
	}
	if len(left) > 0 {
		out.WriteString("\n## Other measurements\n")
	}
	for _, s := range left {
		s.markdown(&out, "")
	}
	return resultsHead + index.String() + out.String()
}

var unlinked = regexp.MustCompile(`[^\p{L}\p{N} _-]+`) // what GitHub leaves out of a heading's link

// line is the study in the page of all: how many of its numbers stand beside the paper's, and how many of these agree
// within two standard errors of the difference, differ by more, or have no standard error.
func (s recorded) line() string {
	var agree, differ, untested int
	for _, c := range s.Cells {
		if c.Ours == nil || c.Paper == nil {
			continue
		}
		switch se, off := math.Hypot(known(c.SE), orZero(c.PaperSE)), math.Abs(*c.Ours-*c.Paper); {
		case !(se > 0):
			untested++
		case off <= 2*se:
			agree++
		default:
			differ++
		}
	}
	head := s.Study + ": " + s.Title
	link := strings.ReplaceAll(strings.ToLower(unlinked.ReplaceAllString(head, "")), " ", "-")
	return fmt.Sprintf("| [%s](#%s) | %s | %d | %d | %d |\n", s.Study, link, strings.ReplaceAll(s.Title, "|", `\|`), agree,
		differ, untested)
}

// markdown writes a study: its note, the remarks, a table for each metric, repetitions and commits.
func (s recorded) markdown(out *strings.Builder, note string) {
	fmt.Fprintf(out, "\n### %s: %s\n", s.Study, s.Title)
	for _, r := range s.Remarks {
		fmt.Fprintf(out, "\n%s (At `%s`.)\n", r.Text, r.Commit)
	}
	if note != "" {
		fmt.Fprintf(out, "\n%s%s.\n", strings.ToUpper(note[:1]), note[1:])
	}
	cells := make([]Cell, len(s.Cells))
	for i, c := range s.Cells {
		cells[i] = Cell{Study: s.Study, Data: c.Data, Method: c.Method, Metric: c.Metric, Ours: known(c.Ours),
			SE: known(c.SE), Reps: c.Reps, Paper: c.Paper}
	}
	for _, metric := range distinct(cells, func(c Cell) string { return c.Metric }) {
		if value, all := constantOf(cells, metric); all {
			fmt.Fprintf(out, "\n%s is %s everywhere.\n", shown(metric), value)
		} else {
			out.WriteString("\n" + Matrix(cells, metric))
		}
	}
	if len(s.Cells) > 0 {
		fmt.Fprintf(out, "\n%s.\n", s.behind())
	}
}

// constantOf returns a metric's value where several cells have no other, and the paper has none.
func constantOf(cells []Cell, metric string) (value string, all bool) {
	count := 0
	for _, c := range cells {
		if c.Metric != metric {
			continue
		}
		text := fmt.Sprintf(c.decimals(), c.Ours)
		if count++; finite(&c.Ours) == nil || c.Paper != nil || count > 1 && text != value {
			return "", false
		}
		value = text
	}
	return value, count > 1
}

// behind lists repetitions and commits by data set and method.
func (s recorded) behind() string {
	origin := func(c recordedCell) string {
		if c.Reps == 1 {
			return fmt.Sprintf("One repetition, at `%s`", c.Commit)
		}
		return fmt.Sprintf("%d repetitions, at `%s`", c.Reps, c.Commit)
	}
	methods := func(data, from string) []string { // from any origin if it is empty
		return distinct(slices.DeleteFunc(slices.Clone(s.Cells), func(c recordedCell) bool {
			return c.Data != data || from != "" && origin(c) != from
		}), method)
	}
	s.Cells = slices.DeleteFunc(slices.Clone(s.Cells), func(c recordedCell) bool { return c.Reps == 0 })
	origins := distinct(s.Cells, origin)
	if len(origins) == 1 {
		return origins[0]
	}
	var parts []string
	for _, o := range origins {
		var names []string
		for _, data := range distinct(s.Cells, func(c recordedCell) string { return c.Data }) {
			switch here := methods(data, o); len(here) {
			case 0:
			case len(methods(data, "")):
				names = append(names, shown(data))
			default:
				names = append(names, shown(data)+" ("+strings.Join(here, ", ")+")")
			}
		}
		parts = append(parts, o+": "+strings.Join(names, "; "))
	}
	return strings.Join(parts, ". ")
}

func method(c recordedCell) string { return c.Method }

// orZero is *x, 0 if x is nil.
func orZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// known is *x, NaN if x is nil.
func known(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

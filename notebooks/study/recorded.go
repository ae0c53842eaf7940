package study

import (
	"cmp"
	_ "embed" // for the head of the results
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// Records are the results that are committed: a JSON file for each study in notebooks/results, and the pages that are
// rendered from them, notebooks/RESULTS.md and one of each paper. The repetitions themselves stay in the cache (Store).
type Records struct {
	folder  string // notebooks
	studies []recorded
	shown   []*shownAs // by claims.txt
}

// recorded is a file: the cells of a study, each with the commit that it was measured at, and what it takes to compute
// its rows again.
type recorded struct {
	Study string         `json:"study"`
	Cells []recordedCell `json:"cells,omitempty"`
	Rows  []rowRecord    `json:"rows,omitempty"`
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

// OpenRecords reads the records of the project in the folder root.
func OpenRecords(root string) (*Records, error) {
	folder := filepath.Join(root, "notebooks")
	r, err := readRecords(os.DirFS(filepath.Join(folder, "results")))
	if err != nil {
		return nil, fmt.Errorf("recorded results: %w", err)
	}
	r.folder = folder
	return r, nil
}

// readRecords reads a folder of results, which may be empty.
func readRecords(folder fs.FS) (r *Records, err error) {
	defer caught(&err)
	r = &Records{}
	if text, err := fs.ReadFile(folder, "claims.txt"); !errors.Is(err, fs.ErrNotExist) {
		failOn(err)
		r.shown = must(readClaims(string(text)))
	}
	for _, name := range must(fs.Glob(folder, "*.json")) {
		var s recorded
		if err := json.Unmarshal(must(fs.ReadFile(folder, name)), &s); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if s.Study+".json" != name {
			return nil, fmt.Errorf("%s is of study %q: name it %s.json", name, s.Study, s.Study)
		}
		r.studies = append(r.studies, s)
	}
	return r, nil
}

// Record puts in the cells of an experiment that ran with the options, measured at their own commit or else at the
// given one, in place of those with the same data set, method and metric. A metric that a method no longer has on a
// data set, such as one that only some results have, goes.
func (r *Records) Record(e Experiment, o Options, cells []Cell, commit string) error {
	var claimed []string
	_, as := r.of(e.ID)
	for _, c := range as.claims {
		for _, d := range c.differences {
			claimed = append(claimed, d.metric)
		}
	}
	slices.Sort(claimed)
	rows, err := e.rows(o, slices.Compact(claimed))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(r.studies, func(s recorded) bool { return s.Study == e.ID })
	if i < 0 {
		i, r.studies = len(r.studies), append(r.studies, recorded{Study: e.ID})
	}
	s := &r.studies[i]
	s.Cells = slices.DeleteFunc(s.Cells, func(o recordedCell) bool {
		now := func(c Cell) bool { return c.Data == o.Data && c.Method == o.Method }
		return slices.ContainsFunc(cells, now) &&
			!slices.ContainsFunc(cells, func(c Cell) bool { return now(c) && c.Metric == o.Metric })
	})
	for _, c := range cells {
		cell := recordedCell{
			Data: c.Data, Method: c.Method, Metric: c.Metric, Ours: finite(&c.Ours), SE: finite(&c.SE), Reps: c.Reps,
			Paper: finite(c.Paper), PaperSE: finite(c.PaperSE), Seconds: finite(&c.Seconds), Commit: cmp.Or(c.Commit, commit),
		}
		k := slices.IndexFunc(s.Cells, func(o recordedCell) bool {
			return o.Data == c.Data && o.Method == c.Method && o.Metric == c.Metric
		})
		if k < 0 {
			k, s.Cells = len(s.Cells), append(s.Cells, cell)
		}
		s.Cells[k] = cell
	}
	for _, now := range rows {
		k := slices.IndexFunc(s.Rows, func(was rowRecord) bool { return was.Data == now.Data && was.Method == now.Method })
		if k < 0 {
			k, s.Rows = len(s.Rows), append(s.Rows, now)
		}
		if was := s.Rows[k]; was.Key == now.Key && was.Repetition == now.Repetition && maps.Equal(was.Values, now.Values) {
			now.Verified = was.Verified
		}
		s.Rows[k] = now
	}
	return nil
}

// Save writes the files and the pages.
func (r *Records) Save() error {
	if err := os.MkdirAll(filepath.Join(r.folder, "results"), 0o755); err != nil {
		return fmt.Errorf("record results: %w", err)
	}
	files := r.pages()
	for _, s := range r.studies {
		files["results/"+s.Study+".json"] = s.text()
	}
	for name, text := range files {
		if err := renameio.WriteFile(filepath.Join(r.folder, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("record results: %w", err)
		}
	}
	return nil
}

// inItem finds the line breaks within the items of a list in JSON that is indented by one space.
var inItem = regexp.MustCompile(`\n {3,}|\n  (})`)

// text is the file: JSON, with a line for each cell and row.
func (s recorded) text() string {
	return inItem.ReplaceAllString(string(must(json.MarshalIndent(s, "", " "))), "$1") + "\n"
}

// Check returns an error unless the pages are what the records give.
func (r *Records) Check() error {
	for name, want := range r.pages() {
		text, err := os.ReadFile(filepath.Join(r.folder, name))
		if err != nil {
			return fmt.Errorf("rendered results: %w", err)
		}
		if string(text) != want {
			return fmt.Errorf("notebooks/%s is not what notebooks/results gives; write it with: go run ./notebooks reproduce "+
				"-record", name)
		}
	}
	return nil
}

// resultsHead begins RESULTS.md: how to read it.
//
//go:embed results.md
var resultsHead string

// pages are RESULTS.md, which has a table of claims for each paper, and a page for each paper, by their paths from the
// folder of notebooks.
func (r *Records) pages() map[string]string {
	var first strings.Builder
	first.WriteString(resultsHead)
	pages := map[string]string{}
	for _, paper := range Papers {
		file := "results/" + paper.Name + ".md"
		var table [][]string
		for _, as := range r.shown {
			s, _ := r.of(as.study)
			for _, c := range as.claims {
				if must(Find(as.study)).Paper() == paper.Name {
					table = append(table, c.row(s, link(as.study, file)))
				}
			}
		}
		if len(table) > 0 {
			fmt.Fprintf(&first, "\n## %s\n\n", paper.Title)
			markdown(&first, []string{"claim", "paper ±", "ours ± (n)", "z", "verdict", "detail"}, table)
		}
		var out strings.Builder
		fmt.Fprintf(&out, "# %s\n\nWritten by `go run ./notebooks reproduce -record`; how to read it: "+
			"[RESULTS](../RESULTS.md).\n", paper.Title)
		var views []string
		for _, e := range All() {
			if _, as := r.of(e.ID); e.Paper() == paper.Name && as.see != "" {
				views = append(views, e.ID+" of "+link(as.see, ""))
			} else if e.Paper() == paper.Name {
				r.section(&out, e)
			}
		}
		if len(views) > 0 {
			fmt.Fprintf(&out, "\nWithout numbers of their own, of other studies' repetitions: %s.\n", strings.Join(views, ", "))
		}
		pages[file] = out.String()
	}
	pages["RESULTS.md"] = first.String()
	return pages
}

// link is to the section of a study in a file.
func link(study, file string) string {
	return fmt.Sprintf("[%s](%s#%s)", study, file, strings.ReplaceAll(strings.ToLower(study), ".", ""))
}

// of is the record of a study, without cells where nothing is recorded, and what claims.txt says of it.
func (r *Records) of(id string) (s recorded, as shownAs) {
	s.Study, as.study = id, id
	if i := slices.IndexFunc(r.studies, func(one recorded) bool { return one.Study == id }); i >= 0 {
		s = r.studies[i]
	}
	if i := slices.IndexFunc(r.shown, func(one *shownAs) bool { return one.study == id }); i >= 0 {
		as = *r.shown[i]
	}
	return s, as
}

// Cells are the recorded cells of a study, of all metrics.
func (r *Records) Cells(id string) []Cell {
	s, _ := r.of(id)
	return s.cells()
}

// section writes a study: the verdicts, the note, the numbers, of some metrics where these are named.
func (r *Records) section(out *strings.Builder, e Experiment, metrics ...string) {
	s, as := r.of(e.ID)
	if len(metrics) > 0 {
		as.metrics = metrics
	}
	if len(s.Cells) == 0 && as.note == "" {
		return
	}
	fmt.Fprintf(out, "\n## %s\n\n%s.\n", e.ID, strings.ToUpper(e.Title[:1])+e.Title[1:])
	for i, c := range as.claims {
		row, before := c.row(s, ""), ""
		if i == 0 {
			before = "\n"
		}
		fmt.Fprintf(out, "%s- %s: %s. Paper %s, ours %s.\n", before, row[4], row[0], row[1], cmp.Or(row[2], "-"))
	}
	if as.note != "" {
		fmt.Fprintf(out, "\n%s\n", as.note)
	}
	if len(s.Cells) > 0 {
		s.table(out, as)
	}
}

// mostRows is the number of rows above which a table leaves out methods that neither the paper nor a claim is about,
// and is made of matrices where these have fewer lines.
const mostRows = 40

// table writes the numbers of some metrics, or of those that the paper has, or of all: a row for each data set and
// method, or a matrix for each metric where there are few or the rows would be many, and below it what is the same of
// all rows and where they were measured.
func (s recorded) table(out *strings.Builder, as shownAs) {
	cells, metrics := s.cells(), as.metrics
	in := func(metric string, paper bool) bool {
		return slices.ContainsFunc(cells, func(c Cell) bool { return c.Metric == metric && (c.Paper != nil || !paper) })
	}
	all := distinct(cells, func(c Cell) string { return c.Metric })
	if len(metrics) == 0 {
		metrics = slices.DeleteFunc(slices.Clone(all), func(m string) bool { return !in(m, true) })
	}
	metrics = slices.DeleteFunc(slices.Clone(metrics), func(m string) bool { return !in(m, false) })
	if len(metrics) == 0 {
		metrics = all
	}
	cells = slices.DeleteFunc(cells, func(c Cell) bool { return !slices.Contains(metrics, c.Metric) })
	reported := slices.ContainsFunc(metrics, func(m string) bool { return in(m, true) })
	few := len(metrics) == 1 || len(metrics) == 2 && !reported
	var said []string
	rows := func() int { return len(distinct(cells, func(c Cell) string { return c.Data + "\n" + c.Method })) }
	if all := rows(); reported && !few && all > mostRows {
		cells = slices.DeleteFunc(cells, func(c Cell) bool {
			return c.Paper == nil && !strings.Contains(as.named(), c.Method) &&
				!slices.ContainsFunc(s.Cells, func(o recordedCell) bool { return o.Method == c.Method && o.Paper != nil })
		})
		if left := all - rows(); left > 0 {
			said = append(said, fmt.Sprintf("%d rows of other methods: `reproduce %s -cells`", left, s.Study))
		}
	}
	matrices := ""
	for _, m := range metrics {
		matrices += "\n" + Matrix(cells, m)
	}
	if few || max(mostRows, strings.Count(matrices, "\n")) < rows() {
		out.WriteString(matrices)
		var reps []int
		for _, c := range cells {
			reps = append(reps, c.Reps)
		}
		if said = append([]string{"n: " + span(reps, "%d")}, said...); reported {
			said = append(said, "in brackets the paper's")
		}
	} else {
		said = append(inRows(out, cells, metrics, in), said...)
	}
	var at []string
	for _, c := range cells {
		at = append(at, strings.Split(c.Commit, ", ")...) // of the repetitions of a cell
	}
	said = append(said, "measured at "+strings.Join(distinct(at, func(commit string) string { return commit }), ", "))
	if len(s.Rows) > 0 {
		verified := distinct(s.Rows, func(r rowRecord) string { return r.Verified })
		all := len(verified)
		verified = slices.DeleteFunc(verified, func(commit string) bool { return commit == "" })
		switch len(verified) {
		case 0:
			said = append(said, "not yet verified")
		case all:
			said = append(said, "verified at "+strings.Join(verified, ", "))
		default:
			said = append(said, "verified at "+strings.Join(verified, ", ")+", not yet all rows")
		}
	}
	fmt.Fprintf(out, "\n%s.\n", strings.Join(said, "; "))
}

// inRows writes a table with a row for each data set and method, and for each metric a column and one of the paper's
// numbers where it has any. It returns the columns that are the same in all rows, which it leaves out.
func inRows(out *strings.Builder, cells []Cell, metrics []string, in func(string, bool) bool) (same []string) {
	columns := [][]string{{"data"}, {"method"}, {"n"}}
	for _, m := range metrics {
		if columns = append(columns, []string{shown(m)}); in(m, true) {
			columns = append(columns, []string{"paper"})
		}
	}
	rows := distinct(cells, func(c Cell) string { return c.Data + "\n" + c.Method })
	at := map[[2]string]Cell{}
	for _, c := range cells {
		row := c.Data + "\n" + c.Method
		at[[2]string{row, c.Metric}], at[[2]string{row}] = c, c
	}
	for _, row := range rows {
		c := at[[2]string{row}]
		texts := []string{shown(c.Data), shown(c.Method), fmt.Sprint(c.Reps)}
		for _, m := range metrics {
			c, has := at[[2]string{row, m}]
			text := ""
			if has {
				text = c.text()
			}
			if texts = append(texts, text); in(m, true) {
				texts = append(texts, c.reported())
			}
		}
		for k, text := range texts {
			columns[k] = append(columns[k], text)
		}
	}
	table := make([][]string, len(rows)+1)
	for k, column := range columns {
		if k < 3 && len(slices.Compact(slices.Clone(column[1:]))) == 1 && len(rows) > 1 {
			same = append(same, column[0]+": "+column[1])
			continue
		}
		for i, text := range column {
			if k == 0 && i > 1 && column[i-1] == text {
				text = ""
			}
			table[i] = append(table[i], text)
		}
	}
	out.WriteString("\n")
	markdown(out, table[0], table[1:])
	return same
}

// cells are those of the record.
func (s recorded) cells() []Cell {
	all := make([]Cell, len(s.Cells))
	for i, c := range s.Cells {
		all[i] = Cell{Study: s.Study, Data: c.Data, Method: c.Method, Metric: c.Metric, Ours: known(c.Ours), SE: known(c.SE),
			Reps: c.Reps, Paper: c.Paper, PaperSE: c.PaperSE, Seconds: orZero(c.Seconds), Commit: c.Commit}
	}
	return all
}

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

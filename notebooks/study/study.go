// Package study holds the experiments of the five papers' tables and figures: the catalogue with the state of each, and
// the code that runs them. Repetitions are kept on disk as they finish, so that an interrupted study resumes where it
// stopped.
package study

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"gobnn/viz"
)

// Cell is one number of a table: ours beside the paper's.
type Cell struct {
	Study   string   // the study's ID
	Data    string   // the data set
	Method  string   // the method, as the paper calls it
	Metric  string   // the score
	Ours    float64  // our mean over repetitions
	SE      float64  // its standard error; NaN for a single repetition
	Reps    int      // number of repetitions
	Paper   *float64 // the paper's number; nil: none
	PaperSE *float64 // its standard error; nil: unknown
	Seconds float64  // total of the repetitions, when they were computed
}

// MarshalJSON writes a cell with its keys in small letters; a number that is not finite is null.
func (c Cell) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Study   string   `json:"study"`
		Data    string   `json:"data"`
		Method  string   `json:"method"`
		Metric  string   `json:"metric"`
		Ours    *float64 `json:"ours"`
		SE      *float64 `json:"se"`
		Reps    int      `json:"reps"`
		Paper   *float64 `json:"paper"`
		PaperSE *float64 `json:"paper_se"`
		Seconds *float64 `json:"seconds"`
	}{c.Study, c.Data, c.Method, c.Metric, finite(&c.Ours), finite(&c.SE), c.Reps, finite(c.Paper), finite(c.PaperSE),
		finite(&c.Seconds)})
}

// finite is x, or nil where it is not a finite number.
func finite(x *float64) *float64 {
	if x == nil || math.IsNaN(*x) || math.IsInf(*x, 0) {
		return nil
	}
	return x
}

// Options are a user's settings for a study. The zero value takes the study's own: the paper's, or reduced as its note
// says.
type Options struct {
	Reps   int // repetitions; 0: the study's own
	Epochs int // epochs of training; 0: the study's own
	// the paper's repetitions and epochs, where the study's own are fewer, and large data sets tuned like the others
	Full       bool
	Data       []string // data sets; empty: all of the study's
	Methods    []string // methods; empty: all of the study's
	Hidden     []int    // units of the network's hidden layers, in studies of any network; empty: the study's own
	Activation string   // of these: tanh or relu; empty: tanh
	Precisions bool     // of weights, biases and noise are learnt, where a study has both
	Rows       int      // of the data, in studies that make their own of any size; 0: the study's own
	Seed       uint64   // of those data; 0: the study's own
	Fresh      bool     // ignore kept results
	FigureDir  string   // where figures are saved; empty: "figures" in compute.CacheDir
	// FigureFormat is one of FigureFormats; empty: png.
	FigureFormat string
	CacheDir     string            // where repetitions are kept; empty: "results" in compute.CacheDir
	Progress     func(line string) // called with lines of progress; nil: none
	Repetition   func(Repetition)  // called where a repetition begins and where one is done or was kept; nil: none
}

// extent are a number of repetitions and of epochs.
type extent struct{ reps, epochs int }

func (o Options) extent(own, paper extent) extent {
	if o.Full {
		own = paper
	}
	return extent{cmp.Or(o.Reps, own.reps), cmp.Or(o.Epochs, own.epochs)}
}

// say passes a line of progress on.
func (o Options) say(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// Select is the part of a study's data sets that the options ask for, in the study's order; a set that the study does
// not have is an error that names those it has.
func (o Options) Select(known []string) ([]string, error) { return chosen("data set", o.Data, known) }

// SelectMethods is Select for methods.
func (o Options) SelectMethods(known []string) ([]string, error) {
	return chosen("method", o.Methods, known)
}

func chosen(kind string, asked, known []string) ([]string, error) {
	asked = rejoined(asked, known)
	for _, name := range asked {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no %s %q in this study; it has: %s", kind, name, strings.Join(known, ", "))
		}
	}
	if len(asked) == 0 {
		return known, nil
	}
	var some []string
	for _, name := range known {
		if slices.Contains(asked, name) {
			some = append(some, name)
		}
	}
	return some, nil
}

// rejoined puts known names together again that have commas of their own, at which the command cut them.
func rejoined(asked, known []string) (names []string) {
	for len(asked) > 0 {
		n := 1
		for k := 2; k <= len(asked); k++ {
			if slices.Contains(known, strings.Join(asked[:k], ", ")) {
				n = k
			}
		}
		names, asked = append(names, strings.Join(asked[:n], ", ")), asked[n:]
	}
	return names
}

// State is the state of a study's implementation.
type State string

// The states of a study.
const (
	Reproduced State = "reproduced"
	Reduced    State = "reduced"    // smaller than in the paper; the note says how
	NeedsData  State = "needs data" // that the user must provide; the note names the file and its place
	NotYet     State = "not yet"
)

// Study is one table or figure of a paper.
type Study struct {
	ID    string // such as "ohsmc.table8"
	Paper string // the paper's short name, the ID's first part
	Title string // what it shows
	State State
	Note  string // details of the state; may be empty
	// AnyNetwork says that the study takes Options.Hidden, Activation and Precisions, AnyData that it takes Rows and Seed.
	AnyNetwork, AnyData bool
	// Run computes the study's cells. When the context ends it returns the cells so far, with the context's error. Nil:
	// not implemented.
	Run func(ctx context.Context, o Options) ([]Cell, error)
	// Draw, for a figure, returns the figure as well; Run saves it to a file.
	Draw func(ctx context.Context, o Options) (*viz.Figure, []Cell, error)
}

// Papers are the papers' short names and titles, in the order in which All goes through them.
var Papers = []struct{ Name, Title string }{
	{"pmcnet", "PMCnet: adaptive importance sampling for all weights of a network"},
	{"ohsmc", "On Feynman-Kac training of partial Bayesian neural networks"},
	{"gohsmc", "Gradient-based proposals within SMC samplers for partial Bayesian neural networks"},
	{"fbnn", "Scaling up Bayesian neural networks with neural networks"},
	{"pbnn", "Penalty Bayesian neural networks"},
}

// All is every table and figure of results in the five papers, paper by paper, tables first.
func All() []Study {
	all := make([]Study, len(catalogue))
	for i, s := range catalogue {
		s.Paper, _, _ = strings.Cut(s.ID, ".")
		s.State = NotYet
		if b, ok := built[s.ID]; ok {
			s.State, s.Note, s.Run, s.Draw, s.AnyNetwork, s.AnyData = b.State, b.Note, b.Run, b.Draw, b.AnyNetwork,
				b.AnyData
		}
		all[i] = s
	}
	return all
}

// Find is the study called id; the error for an unknown one names the nearest.
func Find(id string) (Study, error) {
	var known []string
	for _, s := range All() {
		if s.ID == id {
			return s, nil
		}
		known = append(known, s.ID)
	}
	return Study{}, fmt.Errorf("no study %q; the nearest: %s (`go run ./notebooks list` has all)", id,
		strings.Join(Nearest(id, known), ", "))
}

// mostNearest is the greatest number of names that Nearest returns.
const mostNearest = 5

// Nearest are the names that one mistyped may stand for: those that contain it, or else those that are the fewest
// letters from it.
func Nearest(name string, of []string) []string {
	var found []string
	least := -1
	for _, other := range of {
		switch d := distance(name, other); {
		case len(name) > 2 && strings.Contains(strings.ToLower(other), strings.ToLower(name)):
			if least != 0 {
				found, least = nil, 0
			}
			found = append(found, other)
		case least < 0 || d < least:
			found, least = []string{other}, d
		case d == least:
			found = append(found, other)
		}
	}
	return found[:min(len(found), mostNearest)]
}

// distance is the number of letters to insert, leave out or replace between two names (Levenshtein's), with small and
// capital letters the same.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1) // from a's beginning so far, to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

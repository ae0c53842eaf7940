// Package study holds the experiments of the five papers' tables and figures: the catalogue with the state of each, and
// the code that runs them. Repetitions are kept on disk as they finish, so that an interrupted study resumes where it
// stopped.
package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gobnn/bayes/limits"
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
	Commit  string   // that computed them, of several each; empty: unknown
}

// finite is x, or nil where it is not a finite number.
func finite(x *float64) *float64 {
	if x == nil || math.IsNaN(*x) || math.IsInf(*x, 0) {
		return nil
	}
	return x
}

// Options are a user's settings for an experiment. The zero value takes the experiment's own: the paper's, or reduced
// as its note says.
type Options struct {
	Reps   int // repetitions; 0: the experiment's own
	Epochs int // epochs of training; 0: the experiment's own
	// Seconds, if above 0, are the share of an experiment with trials: repetitions go on, one of each trial after another,
	// until all that are kept have taken so long, Reps are the most, and one of each trial is made in any case.
	Seconds float64
	// the paper's repetitions, epochs and other settings, where the experiment's own are fewer, as its note says, and
	// large data sets tuned like the others
	Full      bool
	Data      []string // data sets; empty: all of the experiment's
	Methods   []string // methods; empty: all of the experiment's
	Fresh     bool     // ignore kept results
	FigureDir string   // where figures are saved; empty: "figures" in compute.CacheDir
	// FigureFormat is one of FigureFormats; empty: png.
	FigureFormat string
	Commit       string            // of the code, which is kept with each repetition; empty: unknown
	CacheDir     string            // where repetitions are kept; empty: "results" in compute.CacheDir
	Progress     func(line string) // called with lines of progress; nil: none

	event func(event) // called where a repetition begins and where one is done or was kept; nil: none
}

// extent has a number of repetitions and a number of epochs.
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

// chosen is the part of an experiment's data sets or methods that is asked for, in the experiment's order; one that it
// does not have is an error that names those it has.
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

// Papers are the papers' short names and titles, in the order in which All goes through them.
var Papers = []struct{ Name, Title string }{
	{"pmcnet", "PMCnet: adaptive importance sampling for all weights of a network"},
	{"ohsmc", "On Feynman-Kac training of partial Bayesian neural networks"},
	{"gohsmc", "Gradient-based proposals within SMC samplers for partial Bayesian neural networks"},
	{"fbnn", "Scaling up Bayesian neural networks with neural networks"},
	{"pbnn", "Penalty Bayesian neural networks"},
	{"practice", "What to take: methods by their own defaults, on tables that nothing was chosen on"},
}

// All is every table and figure of results in the five papers, paper by paper, tables first.
func All() []Experiment { return catalogue }

// Find is the experiment called id; the error for an unknown one names the nearest.
func Find(id string) (Experiment, error) {
	known := distinct(catalogue, func(e Experiment) string { return e.ID })
	if i := slices.Index(known, id); i >= 0 {
		return catalogue[i], nil
	}
	return Experiment{}, fmt.Errorf("no study %q; the nearest: %s (`go run ./notebooks list` has all)", id,
		strings.Join(limits.Nearest(id, known), ", "))
}

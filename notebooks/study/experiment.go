package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gobnn/bayes/compute"
	"gobnn/viz"
)

// Experiment is a table or figure of a paper's results, or one of ours that is marked as such. It is made of trials,
// which are repeated and kept.
type Experiment struct {
	ID    string // such as "ohsmc.table8": the paper's short name and the number that it has there
	Title string // what it shows
	Note  string // in what it is smaller than the paper's, or other; may be empty

	trials  func(o Options) ([]*trial, error)
	metrics []string                   // of the cells, in this order; nil: all, by name
	cells   func(done []*trial) []Cell // in place of the trials' own; nil: these
	// draw is nil of a table.
	draw func(ctx context.Context, o Options, done []*trial) (*viz.Figure, error)
	// plot is in place of draw where the cells are all that is drawn, so that Recorded can draw what is recorded, where
	// it displays the metric plotted.
	plot    func(cells []Cell) (*viz.Figure, error)
	plotted string
	// drawing is counted up when the figure shows something else, so that notebooks with the earlier one are found.
	drawing int
	// bySeconds: runs end after some seconds, so that no two are the same
	bySeconds bool
}

// trial is a method on a data set, which is repeated: a row of a table, a curve or a panel of a figure.
type trial struct {
	Key
	set   string // the data set's name for Options.Data; empty: Key.Data
	reps  int
	run   func(ctx context.Context, repetition int) (Result, error)
	paper map[string]Reported // the paper's numbers by metric; nil: none

	extraSet, extraMethod bool // only where Options.Data, or Methods, names it
	always                bool // also where its method is not asked for: others need its results
	cpus                  int  // that a repetition on a cluster gets; 0: one

	results []Result
}

func (t *trial) dataSet() string { return cmp.Or(t.set, t.Data) }
func (t *trial) method() string  { return t.Method }

// Paper is the paper's short name.
func (e Experiment) Paper() string {
	paper, _, _ := strings.Cut(e.ID, ".")
	return paper
}

// Run computes the cells, and saves a figure in Options.FigureDir. When the context ends it returns the cells so far,
// with the context's error.
func (e Experiment) Run(ctx context.Context, o Options) (cells []Cell, err error) {
	defer caught(&err)
	path := must(o.FigureFile(e.ID))
	fig, cells, err := e.Draw(ctx, o)
	if err != nil || fig == nil {
		return cells, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return cells, fmt.Errorf("folder for figures (-figures names another): %w", err)
	}
	failOn(fig.Save(path))
	o.say("%s: %s", e.ID, path)
	return cells, nil
}

// Draw computes the cells, and the figure; of a table that is nil.
func (e Experiment) Draw(ctx context.Context, o Options) (fig *viz.Figure, cells []Cell, err error) {
	defer caught(&err)
	done, err := e.repeat(ctx, o)
	cells = e.cellsOf(done)
	if err == nil && e.plot != nil {
		fig, err = e.plot(cells)
	} else if err == nil && e.draw != nil {
		fig, err = e.draw(ctx, o, done)
	}
	return fig, cells, err
}

// asked are the trials that the options ask for, and all that have to be run for these.
func (e Experiment) asked(o Options) (done, some []*trial, err error) {
	defer caught(&err)
	all := must(e.trials(o))
	sets := must(chosen("data set", o.Data, distinct(all, (*trial).dataSet)))
	methods := must(chosen("method", o.Methods, distinct(all, (*trial).method)))
	for _, t := range all {
		asked := slices.Contains(methods, t.Method) && !(t.extraMethod && len(o.Methods) == 0)
		if !slices.Contains(sets, t.dataSet()) || t.extraSet && len(o.Data) == 0 || !asked && !t.always {
			continue
		}
		if some = append(some, t); asked {
			done = append(done, t)
		}
	}
	return done, some, nil
}

// repeat runs the trials that are asked for, unless they are kept. When the context ends or a repetition fails it
// returns those that are done with the error.
func (e Experiment) repeat(ctx context.Context, o Options) (done []*trial, err error) {
	defer caught(&err)
	done, some, err := e.asked(o)
	failOn(err)
	store := must(OpenStore(o))
	if o.Seconds > 0 {
		err = inRounds(ctx, store, some, o.Seconds)
		return begun(done), err
	}
	for _, t := range some {
		if t.results, err = store.Repeat(ctx, t.Key, t.reps, t.run); err != nil {
			return begun(done), err
		}
	}
	return done, nil
}

// begun are the trials with a repetition that is done.
func begun(all []*trial) []*trial {
	return slices.DeleteFunc(slices.Clone(all), func(t *trial) bool { return len(t.results) == 0 })
}

// inRounds repeats trials in turn, so that each has about as many repetitions as the others, until all together have
// taken so many seconds, those before an interruption too. The first repetition of each is made in any case, a further
// one if it is expected to end in time.
func inRounds(ctx context.Context, store *Store, all []*trial, seconds float64) (err error) {
	spent := 0.
	for repetition := 0; ; repetition++ {
		more := false
		for _, t := range all {
			if repetition >= t.reps || repetition > len(t.results) ||
				repetition > 0 && spent+t.results[repetition-1].Seconds > seconds {
				continue
			}
			if t.results, err = store.Repeat(ctx, t.Key, repetition+1, t.run); err != nil {
				return err
			}
			spent += t.results[repetition].Seconds
			more = true
		}
		if !more {
			return nil
		}
	}
}

func (e Experiment) cellsOf(done []*trial) (cells []Cell) {
	if e.cells != nil {
		return e.cells(done)
	}
	for _, t := range done {
		some := t.cells(e.ID)
		if e.metrics != nil {
			some = only(some, e.metrics)
		}
		cells = append(cells, some...)
	}
	return cells
}

// cells returns the means over the trial's repetitions, as cells of an experiment.
func (t *trial) cells(id string) []Cell {
	key := t.Key
	key.Study = id
	return Cells(key, t.results, t.paper)
}

// panels are the figures of a grid, up to the first error.
type panels struct {
	figures []*viz.Figure
	err     error
}

func (p *panels) add(fig *viz.Figure, err error) {
	if p.err == nil {
		p.figures, p.err = append(p.figures, fig), err
	}
}

// grid puts the panels side by side, in no more columns than there are panels.
func (p *panels) grid(o viz.GridOptions) (*viz.Figure, error) {
	if p.err != nil {
		return nil, p.err
	}
	if len(p.figures) == 0 {
		return nil, errors.New("there is nothing to draw: every repetition diverged, or has none of what is drawn")
	}
	o.Columns = min(o.Columns, len(p.figures))
	return viz.Grid(o, p.figures...)
}

// inPanels draws a panel of each trial, in a grid.
func inPanels(done []*trial, grid viz.GridOptions, panel func(t *trial) (*viz.Figure, error)) (*viz.Figure, error) {
	var all panels
	for _, t := range done {
		if len(t.results) > 0 {
			all.add(panel(t))
		}
	}
	return all.grid(grid)
}

// byDataSet groups trials by their data set, in order.
func byDataSet(done []*trial) (groups [][]*trial) {
	for _, t := range done {
		if n := len(groups); n > 0 && groups[n-1][0].Data == t.Data {
			groups[n-1] = append(groups[n-1], t)
		} else {
			groups = append(groups, []*trial{t})
		}
	}
	return groups
}

// FigureFormats are those that figures can be saved in.
var FigureFormats = []string{"png", "svg", "pdf"}

// FigureFile is where the figure of the experiment called id is saved.
func (o Options) FigureFile(id string) (string, error) {
	dir, err := folder(o.FigureDir, "figures")
	format := cmp.Or(o.FigureFormat, "png")
	if !slices.Contains(FigureFormats, format) {
		return "", fmt.Errorf("figures as %q: it must be one of %s", format, strings.Join(FigureFormats, ", "))
	}
	return filepath.Join(dir, id+"."+format), err
}

// folder is the one that is asked for, or else one of that name in the cache.
func folder(asked, name string) (string, error) {
	if asked != "" {
		return asked, nil
	}
	cache, err := compute.CacheDir()
	return filepath.Join(cache, name), err
}

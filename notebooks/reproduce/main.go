// Command reproduce lists and runs the studies; `go run ./notebooks list` and `go run ./notebooks reproduce` execute
// it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gobnn/bayes/cluster"
	"gobnn/bayes/limits"
	"gobnn/notebooks/execute"
	"gobnn/notebooks/program"
	"gobnn/notebooks/results"
	"gobnn/notebooks/setup"
	"gobnn/notebooks/study"
	"gobnn/notebooks/took"
	"gobnn/viz/terminal"
)

func main() {
	program.Main(func(ctx context.Context) error { return dispatch(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

func dispatch(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "list":
			return list(args[1:], out)
		case "reproduce":
			return reproduce(ctx, args[1:], out, progress)
		}
	}
	fmt.Fprintln(progress, "usage: go run ./notebooks list | reproduce ID... [flags]")
	return program.ErrUsage
}

// list prints the notebooks, then every study and its state; with names only those of that name.
func list(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("list", flag.ContinueOnError)
	asked, err := program.Parse(flags, `usage: go run ./notebooks list [NAME...]

Lists the notebooks, and every table and figure of results in the five papers with its ID, what it shows, and in what it
is smaller than the paper's ("whole": in nothing). A NAME is that of a notebook, a paper (such as ohsmc) or a study
(ohsmc.table8): only these are listed. Times are the total recorded with the committed results, which were computed from
nothing (no results kept from earlier runs).
`, args)
	if err != nil {
		return err
	}
	recorded, err := took.Recorded(results.Files)
	if err != nil {
		return err
	}
	root, err := projectRoot()
	if err != nil {
		return err
	}
	folder := filepath.Join(root, "notebooks")
	notebooks, err := execute.Names(folder)
	if err != nil {
		return err
	}
	if err := known(asked, notebooks); err != nil {
		return err
	}
	width := terminal.Width(out)
	if err := listNotebooks(out, width, folder, notebooks, asked, recorded); err != nil {
		return err
	}
	headed := false
	for _, paper := range study.Papers {
		named := false
		var before []study.Experiment
		for _, s := range study.All() {
			if s.Paper() != paper.Name || !isAsked(asked, s.ID) && !isAsked(asked, paper.Name) {
				continue
			}
			if !headed {
				fmt.Fprint(out, "\nSTUDIES: go run ./notebooks reproduce ID\n")
				headed = true
			}
			if !named {
				fmt.Fprintf(out, "\n%s\n", paper.Title)
				named = true
			}
			entry(out, width, s.ID, s.Title, unsaid(s, before), took.Line(recorded.Study(s.ID)))
			before = append(before, s)
		}
	}
	return nil
}

// isAsked says whether a name is among those asked for; with none, all are.
func isAsked(asked []string, name string) bool {
	return len(asked) == 0 || slices.Contains(asked, name)
}

// known is an error if something is asked for that list does not have.
func known(asked, notebooks []string) error {
	all := slices.Concat(notebooks, study.InTurn())
	for _, paper := range study.Papers {
		all = append(all, paper.Name)
	}
	for _, name := range asked {
		if !slices.Contains(all, name) {
			return fmt.Errorf("list: no notebook, paper or study %q; the nearest: %s", name,
				strings.Join(slices.Compact(limits.Nearest(name, all)), ", "))
		}
	}
	return nil
}

// unsaid is a study's note, where another's before it, by ID, has the same or its end does: studies of the same runs
// share most of theirs.
func unsaid(s study.Experiment, before []study.Experiment) string {
	for _, other := range before {
		if other.Note == "" {
			continue
		}
		if s.Note == other.Note {
			return "as " + other.ID
		}
		if own, ok := strings.CutSuffix(s.Note, "; "+other.Note); ok {
			return own + "; else as " + other.ID
		}
	}
	return s.Note
}

// idColumns is the width of the column of names, with the space after it.
const idColumns = 21

// entry writes a name and, beside it, wrapped paragraphs; empty ones are left out.
func entry(out io.Writer, width int, name string, paragraphs ...string) {
	first := true
	for _, text := range paragraphs {
		if text == "" {
			continue
		}
		for _, line := range wrap(text, max(20, width-idColumns-1)) {
			if !first {
				name = ""
			}
			fmt.Fprintf(out, "  %-*s%s\n", idColumns-2, name, line)
			first = false
		}
	}
}

// wrap breaks text between words into lines of at most width characters; a longer word has a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// listNotebooks lists the notebooks that are asked for: a line each, with the time that it takes and its title.
func listNotebooks(out io.Writer, width int, folder string, notebooks, asked []string,
	recorded took.Times) error {
	headed := false
	for _, name := range notebooks {
		if !isAsked(asked, name) {
			continue
		}
		if !headed {
			fmt.Fprint(out, "NOTEBOOKS: go run ./notebooks run NAME\n\n")
			headed = true
		}
		path := filepath.Join(folder, name+".ipynb")
		estimate, untimed, err := recorded.Notebook(path)
		if err != nil {
			return err
		}
		title, err := titleOf(path)
		if err != nil {
			return err
		}
		minutes := "not timed"
		if estimate > 0 {
			if minutes = took.Text(estimate); len(untimed) > 0 {
				minutes = "over " + minutes
			}
		}
		line := []rune(fmt.Sprintf("  %-*s%-12s  %s", 12, name, minutes, title))
		fmt.Fprintln(out, string(line[:min(len(line), width-1)]))
	}
	return nil
}

// titleOf is the title of a notebook, the first line of its text.
func titleOf(path string) (string, error) {
	cells, err := execute.Sources(path, "markdown")
	if err != nil {
		return "", err
	}
	for _, text := range cells {
		if first, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "# ") {
			return strings.TrimPrefix(first, "# "), nil
		}
	}
	return "", nil
}

// projectRoot is the folder of the clone that the command runs in.
func projectRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return setup.Root(folder)
}

// runOne runs a study; tests replace it.
var runOne = study.Experiment.Run

// request holds the command's arguments.
type request struct {
	studies []study.Experiment
	options study.Options
	record  bool
	cells   bool // what is recorded is printed, and nothing computed
	verify  bool
	limits  study.Limits // of -verify
	hours   float64      // that everything may take; 0: it is not asked for
	on      string       // the cluster; empty: this process
}

// reproduce runs studies and prints their tables.
func reproduce(ctx context.Context, args []string, out, progress io.Writer) error {
	asked, err := parsed(args)
	if err != nil {
		return err
	}
	say := func(line string) { fmt.Fprintln(progress, line) }
	if cluster.OnNode() {
		asked.options.Progress = say
		return study.Distribute(ctx, asked.on, asked.studies, asked.options)
	}
	root, err := projectRoot()
	if err == nil {
		asked.options.Commit, err = commitOf(ctx, root) // outside of a clone it is not known
	}
	var records *study.Records
	if asked.record || asked.verify || asked.cells {
		if root == "" || err != nil && !asked.cells { // which need not know the commit
			return fmt.Errorf("-record and -verify are of a clone, -cells of the project: %w", err)
		}
		if records, err = study.OpenRecords(root); err != nil {
			return err
		}
	}
	switch {
	case asked.cells:
		for _, s := range asked.studies {
			fmt.Fprintf(out, "%s: %s\n%s", s.ID, s.Title, study.Text(records.Cells(s.ID)))
		}
		return nil
	case asked.verify:
		asked.options.Progress = func(line string) { fmt.Fprintln(out, line) }
		err := records.Verify(ctx, asked.studies, asked.options, asked.limits)
		if !asked.record {
			return err
		}
		return errors.Join(err, records.Save())
	case asked.record && len(asked.studies) == 0:
		return records.Save()
	case asked.on != "":
		o := asked.options
		o.Progress = say
		err := study.Distribute(ctx, asked.on, asked.studies, o)
		if errors.Is(err, cluster.ErrSubmit) {
			return err
		}
		if err != nil {
			return fmt.Errorf("%w\n(what is done is kept; the same command goes on from there)", err)
		}
	}
	var failed []error
	for _, s := range asked.studies {
		one := asked
		if asked.hours > 0 {
			one.options = asked.options.OfAll(s.ID, asked.hours)
		}
		cells, err := one.run(ctx, s, out)
		if ctx.Err() != nil { // nothing is recorded: it could be of fewer repetitions than what is
			return errors.New("interrupted: what is done is kept; the same command (without -fresh) goes on from there")
		}
		if records != nil && len(cells) > 0 {
			if fault := records.Record(s, one.options, cells, asked.options.Commit); fault != nil {
				return errors.Join(err, fault)
			}
			if fault := records.Save(); fault != nil {
				return errors.Join(err, fault)
			}
		}
		if err != nil && asked.hours == 0 {
			return err
		}
		if err != nil { // such as a data set that is not here: the others are computed
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// parsed reads and checks the command's arguments.
func parsed(args []string) (request, error) {
	flags := flag.NewFlagSet("reproduce", flag.ContinueOnError)
	var asked request
	o := &asked.options
	flags.IntVar(&o.Reps, "reps", 0, "number of repetitions (default: the study's own)")
	flags.IntVar(&o.Epochs, "epochs", 0, "epochs of training (default: the study's own)")
	flags.BoolVar(&o.Full, "full", false, "the paper's repetitions, epochs and other settings if the study's own are "+
		"fewer, as its note says, and large data sets tuned like the others: takes hours or days")
	data := flags.String("data", "", "only these data `sets`, separated by commas (default: all of the study's)")
	methods := flags.String("methods", "", "only these `methods`, separated by commas (default: all of the study's)")
	flags.StringVar(&o.FigureDir, "figures", "", "save figures in `FOLDER` (default: figures in the cache folder)")
	flags.StringVar(&o.FigureFormat, "format", "png", "`format` of the figures: png, svg or pdf")
	flags.BoolVar(&asked.record, "record", false, "also put the numbers into notebooks/results and "+
		"notebooks/RESULTS.md; without an ID: write RESULTS.md again from notebooks/results")
	all := flags.Bool("all", false, "every study, each with its share of the hours: repetitions of each row in turn, "+
		"up to the study's own number, as long as it lasts, those of earlier runs counted in; with -record")
	flags.Float64Var(&asked.hours, "hours", study.Hours(), "what -all may take on two cores")
	flags.BoolVar(&asked.cells, "cells", false, "print all metrics that are recorded of the studies, and compute nothing")
	flags.BoolVar(&asked.verify, "verify", false, "compute the cheapest repetition of each recorded row again, and "+
		"compare it: of the studies named, or of all; with -record the rows say at which commit that was")
	flags.Float64Var(&asked.limits.Under, "under", 0, "with -verify: only rows of fewer `seconds`")
	flags.Float64Var(&asked.limits.Within, "within", 0, "with -verify: rows of so many `seconds` in all, the cheapest of "+
		"each study in turn")
	flags.StringVar(&asked.on, "on", "", "do repetitions side by side: \"ray\" by Ray on this machine, an "+
		"`address` such as ray://head:10001 on a cluster whose nodes have the project's environment, \"slurm\" by an "+
		"array job, whose script is written")
	flags.BoolVar(&o.Fresh, "fresh", false, "compute everything again instead of using kept results")
	ids, err := program.Parse(flags, `usage: go run ./notebooks reproduce ID... [flags]
       go run ./notebooks reproduce -all [-hours H]
       go run ./notebooks reproduce -verify [ID...] [-under S] [-within S]

Runs the studies behind tables or figures and prints their results beside the paper's: mean, standard error, number of
repetitions, seconds. Each completed repetition is kept: after Ctrl-C, the same command continues from there. The IDs
are those of "go run ./notebooks list".
`, args)
	if err != nil {
		return asked, err
	}
	own := o.Reps > 0 || o.Epochs > 0 || o.Full || *data != "" || *methods != "" || o.Fresh || asked.on != ""
	switch {
	case (asked.verify || asked.cells) && (own || *all):
		return asked, errors.New("reproduce -verify and -cells take rows as they are recorded: leave the flags -all, " +
			"-reps, -epochs, -full, -data, -methods, -on and -fresh out")
	case !asked.verify && asked.limits != study.Limits{}:
		return asked, errors.New("-under and -within limit -verify: give it too, or leave them out")
	case !*all:
		asked.hours = 0
	case len(ids) > 0 || own:
		return asked, errors.New("reproduce -all computes every study with its own settings: leave IDs and the flags " +
			"-reps, -epochs, -full, -data, -methods, -on and -fresh out; to begin anew delete the folder of the kept results")
	case !(asked.hours > 0):
		return asked, fmt.Errorf("-hours %v: must be above 0", asked.hours)
	default:
		asked.record = true
		ids = study.InTurn()
	}
	if asked.on != "" && o.Fresh {
		return asked, errors.New("-on with -fresh: to compute everything again, delete the folder of the kept results, " +
			"and leave -fresh out")
	}
	if len(ids) == 0 && asked.verify {
		ids = study.InTurn()
	} else if len(ids) == 0 && !asked.record {
		return asked, errors.New("reproduce: which study? `go run ./notebooks list` shows their IDs")
	}
	if o.Reps < 0 || o.Epochs < 0 {
		return asked, fmt.Errorf("-reps %d, -epochs %d: must not be negative", o.Reps, o.Epochs)
	}
	o.Data, o.Methods = names(*data), names(*methods)
	if _, err := o.FigureFile(""); err != nil {
		return asked, fmt.Errorf("-format: %w", err)
	}
	for _, id := range ids {
		s, err := study.Find(id)
		if err != nil {
			return asked, err
		}
		asked.studies = append(asked.studies, s)
	}
	return asked, nil
}

// run runs a study and prints its table. An error comes with the cells that are known.
func (r request) run(ctx context.Context, s study.Experiment, out io.Writer) ([]study.Cell, error) {
	start := time.Now()
	watched, done := r.options.Watch(s.ID)
	cells, err := runOne(s, ctx, watched)
	done(err)
	fmt.Fprintf(out, "%s: %s\n", s.ID, s.Title)
	if s.Note != "" {
		fmt.Fprintf(out, "(%s)\n", s.Note)
	}
	fmt.Fprint(out, study.Text(cells))
	fmt.Fprintf(out, "%.1f s now; a row's seconds are those of its repetitions when they were computed\n",
		time.Since(start).Seconds())
	if err != nil {
		err = fmt.Errorf("%s: %w", s.ID, err)
	}
	return cells, errors.Join(err, where(out, s, r.options))
}

// where says where the figure and the repetitions of a study lie.
func where(out io.Writer, s study.Experiment, o study.Options) error {
	figure, err := o.FigureFile(s.ID)
	folder, fault := o.ResultDir()
	for _, at := range [][2]string{{"figure", figure}, {"kept results", folder}} {
		if _, err := os.Stat(at[1]); err == nil {
			fmt.Fprintf(out, "%s: %s\n", at[0], at[1])
		}
	}
	return errors.Join(err, fault)
}

// commitOf is the last commit of the clone that the command runs in which changed code, so that texts and records may
// follow it, and whether the code has changes.
func commitOf(ctx context.Context, root string) (string, error) {
	code := []string{"--", "*.go", "go.mod", "go.sum"}
	commit, err := git(ctx, root, append([]string{"log", "-1", "--format=%h", "--abbrev=7"}, code...)...)
	if err != nil {
		return "", err
	}
	changed, err := git(ctx, root, append([]string{"status", "--porcelain", "--untracked-files=no"}, code...)...)
	if changed != "" {
		commit += " with changes"
	}
	return commit, err
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// names returns the parts of a list with commas, without space or empty ones.
func names(list string) []string {
	var out []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

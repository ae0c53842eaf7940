// Command table goes from a table to predictions: `go run ./notebooks fit`, `predict` and `report` execute it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/auto"
	"gobnn/bayes/compute/tensorfile"
	"gobnn/bayes/dataset"
	"gobnn/bayes/dataset/parquet"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/nn/onnx"
	"gobnn/bayes/run"
	"gobnn/notebooks/program"
	"gobnn/viz"
	"gobnn/viz/report"

	"github.com/google/renameio/v2"
	"golang.org/x/text/encoding/htmlindex"
)

func main() {
	program.Main(func(ctx context.Context) error { return dispatch(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

func dispatch(ctx context.Context, args []string, out, progress io.Writer) error {
	verbs := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"fit": fitVerb, "predict": predictVerb, "report": reportVerb,
	}
	if len(args) > 0 && verbs[args[0]] != nil {
		err := verbs[args[0]](ctx, args[1:], out, progress)
		if err != nil {
			err = flagError{inFlags(err), err}
		}
		return err
	}
	fmt.Fprintln(progress, "usage: go run ./notebooks fit | predict | report [flags]")
	return program.ErrUsage
}

// method is what fits; tests take one that is done sooner.
var method = func(seconds float64) fit.Method { return auto.Method{Seconds: seconds} }

// table are the flags that say how a file is read.
type table struct {
	noHeader                    bool
	decimal, missing            string
	delimiter, encoding         string
	task, group, order          string
	weight, exposure, event, id string
	network                     string
	na, ordinal                 list
	target, ignore, categories  list
}

// reading adds the flags that every verb has.
func (t *table) reading(flags *flag.FlagSet) {
	flags.BoolVar(&t.noHeader, "no-header", false, "the first line is data: columns are x0, x1, ...")
	flags.StringVar(&t.encoding, "encoding", "", "the file's encoding by `name`, such as latin1 or shift_jis "+
		"(default: UTF-8, or what its byte order mark says)")
	flags.StringVar(&t.delimiter, "delimiter", "", "the `mark` between fields (default: found)")
	flags.StringVar(&t.decimal, "decimal", "", "the decimal `mark`, ',' or '.', where digits are grouped or it is a comma")
	flags.StringVar(&t.missing, "missing", "error", "what to do with a row that has a missing value: error, drop, or "+
		"mean (of the feature's column)")
	flags.StringVar(&t.exposure, "exposure", "", "the `column` of what counts were counted over, such as years; it is no "+
		"feature")
	flags.StringVar(&t.network, "network", "", "an ONNX `file` that makes features of the columns, in their order, up to "+
		"its last layer, in place of which a new one is fitted")
	flags.Var(&t.na, "na", "`texts` that stand for a missing value, separated by commas (default: an empty "+
		"field, NA, ? and nan)")
}

// columns adds the flags that say what the columns are.
func (t *table) columns(flags *flag.FlagSet) {
	flags.Var(&t.target, "target", "the `column` to predict, or several of a regression, separated by commas; among "+
		"several, one with a comma stands in quotes (default: the last)")
	flags.StringVar(&t.task, "task", "", "regression or classification (default: by the target: texts, true and "+
		"false, or two numbers are classes)")
	flags.Var(&t.ordinal, "ordinal", "the target's `classes` where they have an order, from the lowest to the "+
		"highest, separated by commas, such as low,medium,high")
	flags.Var(&t.ignore, "ignore", "`columns` to leave out, separated by commas")
	flags.Var(&t.categories, "categories", "`columns` of numbers that are categories, separated by commas; "+
		"columns of text are anyway")
	flags.StringVar(&t.weight, "weight", "", "the `column` of weights, by which rows count in training")
	flags.StringVar(&t.event, "event", "", "the `column` that says whether the target was seen (1 or true) or is at "+
		"least so much (0 or false), such as the lifetime of what is still alive")
	flags.StringVar(&t.group, "group", "", "the `column` of groups, such as patients: whole groups are held out")
	flags.StringVar(&t.order, "order", "", "the `column` of time: the last rows are held out")
}

// behind is the network of the flags, of which a posterior needs the same; nil: none.
func (t *table) behind() (nn.Network, error) {
	if t.network == "" {
		return nil, nil
	}
	return onnx.Open(t.network, onnx.Options{})
}

// model is the default model of rows, and what the flags say of it.
func (t *table) model(rows *dataset.Dataset) (bayes.Model, error) {
	model, err := bayes.ModelFor(rows)
	if err != nil {
		return model, err
	}
	if t.ordinal.text != "" {
		model.Likelihood = bayes.Ordinal{}
	}
	network, err := t.behind()
	if network != nil {
		model.Network, model.Scaling.NormalScores = network, false
	}
	return model, err
}

// open reads a file, as the flags say or, of a posterior, as its training file was read. A list of columns that the
// file does not have is a single name with commas, if it has that.
func (t *table) open(path string, like *dataset.Dataset) (*dataset.Dataset, error) {
	data, err := t.read(path, like)
	for _, l := range []*list{&t.target, &t.categories, &t.ignore} { // in this order they are looked for
		var none *dataset.NoColumnError
		if !errors.As(err, &none) || len(l.names) < 2 || !slices.Contains(l.names, none.Name) {
			continue
		}
		l.names = []string{l.text}
		whole, fault := t.read(path, like)
		if errors.As(fault, &none) && none.Name == l.text {
			return nil, err
		}
		data, err = whole, fault
	}
	return data, err
}

func (t *table) read(path string, like *dataset.Dataset) (*dataset.Dataset, error) {
	opts := dataset.CSVOptions{NoHeader: t.noHeader, Like: like, Weight: t.weight, Exposure: t.exposure,
		Event: t.event}
	policies := map[string]dataset.Missing{"error": dataset.MissingError, "drop": dataset.MissingDropRow,
		"mean": dataset.MissingMean}
	var known bool
	if opts.Missing, known = policies[t.missing]; !known {
		return nil, fmt.Errorf("-missing is %q: take error, drop or mean", t.missing)
	}
	for _, o := range []struct {
		name, text string
		to         *rune
	}{{"decimal", t.decimal, &opts.Decimal}, {"delimiter", strings.ReplaceAll(t.delimiter, `\t`, "\t"), &opts.Delimiter}} {
		mark := []rune(o.text)
		if len(mark) > 1 {
			return nil, fmt.Errorf("-%s is %q: take a single mark, such as ','", o.name, o.text)
		}
		if len(mark) == 1 {
			*o.to = mark[0]
		}
	}
	if t.encoding != "" {
		var err error
		if opts.Encoding, err = htmlindex.Get(t.encoding); err != nil {
			return nil, fmt.Errorf("-encoding is %q: take a name such as utf-8, latin1, windows-1252 or shift_jis", t.encoding)
		}
	}
	if t.na.text != "" {
		opts.MissingTokens = append(slices.Clone(t.na.names), "")
	}
	open := dataset.OpenCSV
	if parquet.Is(path) {
		open = parquet.Open
	}
	if like != nil {
		opts.Group = t.id // a column of texts that is no feature
		return open(path, opts)
	}
	tasks := map[string]dataset.Task{"": dataset.TaskByTarget, "regression": dataset.Regression,
		"classification": dataset.Classification}
	if opts.Task, known = tasks[t.task]; !known {
		return nil, fmt.Errorf("-task is %q: take regression or classification", t.task)
	}
	if t.ordinal.text != "" {
		opts.Classes = t.ordinal.names
		switch {
		case t.task == "regression":
			return nil, fmt.Errorf("-task is %q, but -ordinal lists the classes %q: leave one of them out", t.task, opts.Classes)
		case len(opts.Classes) < 2 || slices.Contains(opts.Classes, ""):
			return nil, fmt.Errorf("-ordinal is %q: name at least two classes, from the lowest to the highest, separated by "+
				"commas", t.ordinal.text)
		}
		opts.Task = dataset.Classification
	}
	opts.Targets, opts.Ignore = t.target.names, t.ignore.names
	opts.Categorical = append(slices.Clone(t.categories.names), dataset.EveryText)
	opts.Group, opts.Order = t.group, t.order
	return open(path, opts)
}

// files are the arguments of a verb, as many as names.
func files(verb string, rest []string, progress io.Writer, names ...string) error {
	if len(rest) == len(names) {
		return nil
	}
	fmt.Fprintf(progress, "gobnn %s: it takes %s, got %q\n", verb, strings.Join(names, " and "), rest)
	return program.ErrUsage
}

func fitVerb(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("fit", flag.ContinueOnError)
	flags.SetOutput(progress)
	var t table
	t.columns(flags)
	t.reading(flags)
	seconds := flags.Float64("seconds", 60, "the `budget` of training and sampling")
	test := flags.Float64("test", .2, "the `share` of the rows that is held out to judge the predictions; 0: "+
		"none, and there is no page")
	seed := flags.Uint64("seed", 1, "of everything random")
	name := flags.String("out", "", "the files' `name` (default: the data file's, in this folder)")
	checkpoint := flags.String("checkpoint", "", "a `file` to go on from after an interruption")
	replace := flags.Bool("replace", false, "write over the files of another target, or another run's checkpoint")
	rest, err := program.Parse(flags, `usage: go run ./notebooks fit DATA [flags]

Fits the default method to a table, a CSV or Parquet file: an ensemble of networks by cross-validation and Markov chains
begun at its members. It writes NAME.posterior, by which predict predicts new rows, and NAME.html, a page that says
whether to trust them: a part of the rows is held out for that. A column that names the rows, such as a customer's
number, belongs to -ignore: predict -id writes it beside the predictions. Ctrl-C ends it early, with what there is.
`, args)
	if err != nil {
		return err
	}
	if err := files("fit", rest, progress, "a CSV or Parquet file"); err != nil {
		return err
	}
	if !(*test >= 0 && *test < 1) {
		return fmt.Errorf("-test is %v: take a share between 0 and 1", *test)
	}
	data, err := t.open(rest[0], nil)
	if err != nil {
		return err
	}
	fmt.Fprint(out, data)
	if data.Task == dataset.BinaryClassification && t.task == "" {
		fmt.Fprintf(out, "the target has two values, %q: they are classes (-task regression takes numbers as such)\n",
			data.Classes)
	}
	targets, rows := data.Leaks()
	for _, leak := range append(targets, rows...) {
		fmt.Fprintf(out, "look: %s\n", inFlags(leak))
	}
	parts := dataset.Parts{Train: data}
	if *test > 0 {
		if parts, err = data.SplitDistinct(dataset.Fractions{Train: 1 - *test, Test: *test}, *seed); err != nil {
			return err
		}
		if parts.Test.Rows() < 2 {
			return fmt.Errorf("-test is %v, which holds out one row of %d, and that judges nothing: take a larger share, or 0 "+
				"for no page", *test, data.Rows())
		}
	}
	model, err := t.model(parts.Train)
	if err != nil {
		return err
	}
	if *name == "" {
		*name = data.Name
	}
	if !*replace {
		if err := mayWrite(*name, data.TargetNames()); err != nil {
			return err
		}
	}
	place, err := renameio.NewPendingFile(*name + ".posterior") // a folder that is not there is better known before
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	if err := place.Cleanup(); err != nil {
		return err
	}
	result, err := fit.Fit(ctx, model, method(*seconds), parts, run.Settings{
		Seed: *seed, Checkpoint: *checkpoint, Replace: *replace, Progress: viz.NewProgress("fit").Show,
	})
	if err != nil {
		return err
	}
	if did := fit.Details[*auto.Details](result); did != nil {
		fmt.Fprintln(out, did)
	}
	if err := result.Posterior.Save(*name + ".posterior"); err != nil {
		return err
	}
	if parts.Test == nil {
		doubts(result.Posterior, progress)
		fmt.Fprintf(out, "the posterior is in %s.posterior; no rows were held out, so that nothing is known of its "+
			"predictions\n", *name)
		return nil
	}
	r := &report.Report{Posterior: result.Posterior, Rows: parts.Test, Train: parts.Train, Result: result}
	fmt.Fprintf(out, "the posterior is in %s.posterior\n", *name)
	paged := ctx
	if ctx.Err() != nil { // training was ended early; another signal ends the program
		paged = context.WithoutCancel(ctx)
	}
	return written(paged, r, *name+".html", out)
}

// mayWrite is an error if a fit to these targets would write over files that are not of such a fit.
func mayWrite(name string, targets []string) error {
	const cure = "name other files by -out, or write over it by -replace"
	old, err := bayes.Load(name + ".posterior")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(name + ".html"); err == nil {
			return fmt.Errorf("%s.html is there, and no posterior that it is of: %s", name, cure)
		}
	case err != nil:
		return fmt.Errorf("%s.posterior is there, and cannot be read: %s: %w", name, cure, err)
	case !slices.Equal(old.Origin().TargetNames, targets):
		return fmt.Errorf("%s.posterior is there, and predicts %q, not %q: %s", name, old.Origin().TargetNames, targets, cure)
	}
	return nil
}

// doubts prints why the fit of a posterior is doubtful, as far as its file knows.
func doubts(p *bayes.Posterior, to io.Writer) {
	from := p.Provenance()
	if s := run.Status(from.Status); s != "" && s != run.Completed && s != run.StoppedEarly {
		fmt.Fprintf(to, "gobnn: warning: the fit did not end by itself (%s): a longer one may be better\n", s)
	}
	for _, w := range from.Warnings {
		fmt.Fprintln(to, "gobnn: warning of the fit:", w)
	}
}

// written writes the page, and prints its verdict and scores.
func written(ctx context.Context, r *report.Report, path string, out io.Writer) error {
	v, err := r.Judge(ctx)
	if err != nil {
		return err
	}
	held := "rows held out"
	if r.Train == nil {
		held = "rows"
	}
	fmt.Fprintf(out, "\n%d %s:\n%s\n", r.Rows.Rows(), held, v.Trust)
	for _, line := range v.Errors {
		fmt.Fprintln(out, line)
	}
	for _, reason := range append(v.Reasons, v.Merits...) {
		fmt.Fprintf(out, "- %s\n", reason)
	}
	fmt.Fprintf(out, "\n%s\n", v.Scores)
	page, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644))
	if err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	defer func() { _ = page.Cleanup() }() // does nothing once it is replaced
	if err := v.Write(ctx, page); err != nil {
		return err
	}
	if err := page.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	fmt.Fprintf(out, "the page is %s\n", filepath.Clean(path))
	return nil
}

// load reads a posterior, and the network of the flags before.
func (t *table) load(path string) (*bayes.Posterior, error) {
	if _, err := t.behind(); err != nil {
		return nil, err
	}
	posterior, err := bayes.Load(path)
	if errors.Is(err, onnx.ErrNotOpened) {
		err = fmt.Errorf("%w: name it by -network", err)
	}
	if errors.Is(err, tensorfile.ErrDamaged) { // perhaps it never was one
		err = fmt.Errorf("%s is no posterior, or damaged; first comes the posterior, and then the rows: %w", path, err)
	}
	return posterior, err
}

func reportVerb(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	flags.SetOutput(progress)
	var t table
	t.reading(flags)
	flags.StringVar(&t.event, "event", "", "the `column` that says whether the target was seen, as in fit")
	name := flags.String("out", "", "the page's `file` (default: the posterior's name, in this folder, with the "+
		"ending .html)")
	rest, err := program.Parse(flags, `usage: go run ./notebooks report NAME.posterior DATA [flags]

Writes the page that says whether to trust a posterior's predictions of a table with targets. Of the file that it was
fitted to, these are the rows that fit held out; all rows of any other.
`, args)
	if err != nil {
		return err
	}
	if err := files("report", rest, progress, "a posterior", "a CSV or Parquet file"); err != nil {
		return err
	}
	posterior, err := t.load(rest[0])
	if err != nil {
		return err
	}
	data, err := t.open(rest[1], posterior.Like())
	if err != nil {
		return err
	}
	from := posterior.Provenance()
	if from.Extras.Censored && t.event == "" {
		return errors.New("the posterior was fitted with targets that were not all seen: name their column by -event, " +
			"as in fit")
	}
	if err := posterior.CheckExposure(data); err != nil {
		return err
	}
	held, train, err := data.Without(from.Trained)
	switch {
	case err != nil:
		return err
	case held == nil:
		return fmt.Errorf("%s has the rows that the posterior was trained on: they cannot judge it; give others", rest[1])
	case train == nil:
		fmt.Fprintf(out, "none of the rows is known to have been trained on; if %s is the file that fit read, read it with "+
			"the same flags\n", rest[1])
	}
	r := &report.Report{Posterior: posterior, Rows: held, Train: train}
	if *name == "" {
		*name = strings.TrimSuffix(filepath.Base(rest[0]), ".posterior") + ".html"
	}
	return written(ctx, r, *name, out)
}

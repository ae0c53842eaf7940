package main

import (
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/notebooks/program"

	"github.com/google/renameio/v2"
)

// most is the number of rows that are predicted at a time.
const most = 2000

func predictVerb(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("predict", flag.ContinueOnError)
	flags.SetOutput(progress)
	var t table
	t.reading(flags)
	level := flags.Float64("level", .9, "the `probability` of the intervals of a regression")
	var quantiles list
	flags.Var(&quantiles, "quantiles", "in place of the interval the quantiles at these `levels`, separated by commas")
	flags.StringVar(&t.id, "id", "", "the `column` that names the rows, written beside each prediction; it is no feature")
	name := flags.String("out", "", "the `file` of the predictions (default: they are printed)")
	rest, err := program.Parse(flags, `usage: go run ./notebooks predict NAME.posterior NEW [flags]

Predicts the rows of a file, whose columns are found by name: a CSV file with the row's number (counted from 0), and for
each target of a regression its mean, standard deviation and interval or quantiles, noise included, or else the class
and the probability of each.
`, args)
	if err != nil {
		return err
	}
	if err := files("predict", rest, progress, "a posterior", "a CSV or Parquet file"); err != nil {
		return err
	}
	if !(*level > 0 && *level < 1) {
		return fmt.Errorf("-level is %v: take a probability between 0 and 1", *level)
	}
	levels := []float64{(1 - *level) / 2, 1 - (1-*level)/2}
	if quantiles.text != "" {
		levels = nil
		for _, text := range quantiles.names {
			level, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil || !(level > 0 && level < 1) {
				return fmt.Errorf("-quantiles has %q: take levels between 0 and 1, separated by commas, such as .05,.5,.95", text)
			}
			levels = append(levels, level)
		}
	}
	posterior, err := t.load(rest[0])
	if err != nil {
		return err
	}
	like := posterior.Like()
	like.Target, like.Targets = "", nil // new rows have none, and if they have it does not matter
	rows, err := t.open(rest[1], like)
	if err != nil {
		return flagError{inFlags(err, "Group", "-id"), err}
	}
	if err := posterior.CheckExposure(rows); err != nil {
		return err
	}
	doubts(posterior, progress)
	if *name == "" {
		return predicted(ctx, posterior, rows, t.id, levels, out, progress)
	}
	file, err := renameio.NewPendingFile(*name, renameio.WithPermissions(0o644))
	if err != nil {
		return fmt.Errorf("the predictions: %w", err)
	}
	defer func() { _ = file.Cleanup() }() // does nothing once it is replaced
	if err := predicted(ctx, posterior, rows, t.id, levels, file, progress); err != nil {
		return err
	}
	return file.CloseAtomicallyReplace()
}

// predicted writes the predictions of all rows, some at a time, and to progress what makes them doubtful. id is the
// column of the rows' names, and levels are those of the quantiles of a regression.
func predicted(
	ctx context.Context, posterior *bayes.Posterior, rows *dataset.Dataset, id string, levels []float64,
	out, progress io.Writer,
) error {
	o := posterior.Origin()
	classes := len(o.Classes) > 0
	head := []string{"row"}
	if rows.Group != nil {
		head = append(head, id)
	}
	switch {
	case classes:
		head = append(head, "class")
		for _, class := range o.Classes {
			head = append(head, "p("+class+")")
		}
	default:
		percent := func(p float64) string { return strconv.FormatFloat(math.Round(1e10*p)/1e8, 'g', -1, 64) + " %" }
		for _, target := range o.TargetNames {
			head = append(head, target, target+" sd")
			for _, level := range levels {
				head = append(head, target+" "+percent(level))
			}
		}
	}
	table := csv.NewWriter(out)
	if err := table.Write(head); err != nil {
		return err
	}
	for _, w := range posterior.Unlike(rows) {
		fmt.Fprintln(progress, "gobnn: warning:", w)
	}
	from := 0
	for p, err := range posterior.PredictBatches(ctx, rows.X, most) {
		if err != nil {
			return err
		}
		if rows.Exposure != nil {
			if p, err = p.WithExposure(rows.Exposure[from : from+p.Rows]); err != nil {
				return err
			}
		}
		lines := lines
		if classes {
			lines = labels
		}
		records, err := lines(p, o.Classes, levels)
		if err != nil {
			return err
		}
		for i, record := range records {
			names := []string{strconv.Itoa(rows.OriginalRow(from + i))}
			if rows.Group != nil {
				names = append(names, rows.Group[from+i])
			}
			if err := table.Write(append(names, record...)); err != nil {
				return err
			}
		}
		from += p.Rows
	}
	table.Flush()
	return table.Error()
}

// lines are the numbers of each row of a regression.
func lines(p bayes.Prediction, _ []string, levels []float64) ([][]string, error) {
	mean, err := p.Mean()
	if err != nil {
		return nil, err
	}
	stdDev, err := p.StdDev()
	if err != nil {
		return nil, err
	}
	numbers := [][]float64{mean, stdDev}
	for _, level := range levels {
		quantile, err := p.Quantile(level)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, quantile)
	}
	all := make([][]string, p.Rows)
	for i := range mean {
		row := i / p.Columns()
		for _, of := range numbers {
			all[row] = append(all[row], strconv.FormatFloat(of[i], 'g', dataset.Digits(of[i], stdDev[i], 8), 64))
		}
	}
	return all, nil
}

// labels are the class of each row and the probabilities.
func labels(p bayes.Prediction, classes []string, _ []float64) ([][]string, error) {
	probabilities, err := p.Probabilities()
	if err != nil {
		return nil, err
	}
	labels, err := p.Labels()
	if err != nil {
		return nil, err
	}
	all := make([][]string, p.Rows)
	for i, label := range labels {
		all[i] = []string{classes[label]}
		for _, q := range probabilities[i] {
			all[i] = append(all[i], strconv.FormatFloat(q, 'g', 6, 64))
		}
	}
	return all, nil
}

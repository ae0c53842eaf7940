package fit

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
)

// mostClasses is the largest number of classes that the targets of a Source may have: a larger target is an error.
const mostClasses = 10_000

// streamed joins a model with the rows of a Source, without reading any: examined does. Until then nothing is scaled,
// and a classification has two classes.
func streamed(owner string, model bayes.Model, source dataset.Source) (*Data, error) {
	if n := source.Rows(); n < 1 {
		return nil, fmt.Errorf("%s: the source has %d rows: there must be at least 1", owner, n)
	}
	if model.Scaling.NormalScores {
		return nil, fmt.Errorf("%s: Scaling.NormalScores ranks the rows, and those of a source are not in memory: leave it "+
			"out, or give the rows as Parts.Train", owner)
	}
	outputs := source.Targets()
	if l := model.Likelihood; l != nil && l.Task() == dataset.Classification {
		outputs = 2
	}
	bound, err := bind(model, source.Dims(), outputs)
	if err != nil {
		return nil, err
	}
	if task, k := model.Likelihood.Task(), source.Targets(); task != dataset.Regression && k != 1 {
		return nil, fmt.Errorf("%s: likelihood %T is for %v, but the source has %d targets: there must be 1, the number of "+
			"the class", owner, model.Likelihood, task, k)
	}
	return &Data{
		Owner: owner, Bound: bound, Source: source, raw: source,
		Features: dataset.NoScaler(bound.Inputs), Target: dataset.NoScaler(bound.Targets()),
	}, model.Registered()
}

// examined is the data of streamed after one reading of the source, rowsAtOnce rows at a time (0: 4096). The reading
// checks the numbers, computes the scalers, unless Model.Scaling keeps the numbers as they are, and the hash that
// identifies the data. The number of classes of a classification is the largest target plus 1. Errors wrap
// dataset.ErrMissingClass if a class has no row.
func (d *Data) examined(ctx context.Context, rowsAtOnce int) (*Data, error) {
	model := d.Bound.Model
	rows := &targets{likelihood: model.Likelihood, each: d.Source.Targets()}
	found, err := dataset.Examine(ctx, d.raw, rowsAtOnce, rows.visit)
	if err == nil {
		err = rows.missing()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Owner, err)
	}
	read := *d
	if model.Likelihood.Task() == dataset.Classification {
		if read.Bound, err = bind(model, d.Bound.Inputs, len(rows.counts)); err != nil {
			return nil, err
		}
		if part := d.Parts.Validation; part != nil && part.Outputs() != read.Bound.Outputs {
			return nil, fmt.Errorf("%s: the source has %d classes, and the data %q beside it %d (%q): give it as many, in the "+
				"order of their numbers", d.Owner, read.Bound.Outputs, part.Name, part.Outputs(), part.Classes)
		}
	}
	read.hash = found.Hash
	if want := d.Parts.TrainHash; want != "" {
		if err := read.checkHash(want); err != nil {
			return nil, err
		}
	}
	if !model.Scaling.KeepFeatures {
		read.Features = found.Features
	}
	if model.ScalesTarget() {
		read.Target = found.Targets
	}
	read.Source = found.Scaled(d.raw, read.Features, read.Target)
	return &read, nil
}

// read reads the rows of the job's Source, and prepares the method for what it has found.
func (j *Job) read(ctx context.Context) error {
	data, err := j.examined(ctx, j.takes.RowsAtOnce)
	if err != nil {
		return err
	}
	j.Data, j.method = data, j.asGiven
	return j.prepare(j.Settings)
}

// targets checks the targets of a source, and counts the rows of classes.
type targets struct {
	likelihood bayes.Likelihood
	each       int   // numbers of a row
	counts     []int // by class
}

// visit checks the targets of a block of rows.
func (t *targets) visit(from int, _, y []float64) error {
	task := t.likelihood.Task()
	for i, v := range y {
		if task == dataset.Regression {
			if err := bayes.CheckTarget(t.likelihood, v); err != nil {
				return fmt.Errorf("the source's target %d of row %d %w", i%t.each, from+i/t.each, err)
			}
			continue
		}
		most := mostClasses
		if task == dataset.BinaryClassification {
			most = 2
		}
		if v != math.Trunc(v) || v < 0 || v >= float64(most) {
			return fmt.Errorf("the source's target of row %d is %v: for %v it must be the number of a class, from 0 to %d",
				from+i, v, task, most-1)
		}
		for len(t.counts) <= int(v) {
			t.counts = append(t.counts, 0)
		}
		t.counts[int(v)]++
	}
	return nil
}

// missing is an error if a class has no row.
func (t *targets) missing() error {
	if t.likelihood.Task() == dataset.Regression {
		return nil
	}
	for len(t.counts) < 2 {
		t.counts = append(t.counts, 0)
	}
	for class, count := range t.counts {
		if count == 0 {
			return fmt.Errorf("%w: the source has no row of class %d", dataset.ErrMissingClass, class)
		}
	}
	return nil
}

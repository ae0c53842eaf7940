// Package effect says what each feature of a table does to a posterior's predictions: how much they change, on average
// over the rows, when the feature alone is moved.
package effect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Effect is what one feature does.
type Effect struct {
	Feature string // a column of numbers, or a category's value as "column=value"
	// From and To are the values that the feature is moved between: the 5 % and the 95 % quantile of its column. A
	// category is moved from the row's own value, which is then another, to this one: they are 0 and 1.
	From, To float64
	// Change is the mean over rows of the predictive mean at To less that at From, in the target's units, or that of a
	// class's probability. StdDev is its standard deviation over the posterior.
	Change, StdDev float64
	// OverRows is the standard deviation of the change over the rows: that of a feature whose effect depends on the
	// others is large beside Change.
	OverRows float64
}

// String is a line for people.
func (e Effect) String() string {
	return fmt.Sprintf("%s, from %.4g to %.4g: %+.4g ± %.2g", e.Feature, e.From, e.To, e.Change, e.StdDev)
}

// mostRows is the number of rows, at even steps through the table, that the effects are the mean of.
const mostRows = 100

// Of returns the effects of all features, the largest first, on one output: a target of a regression, counted from 0,
// or a class. The rows are those on which the other features stay as they are (partial dependence; Friedman 2001,
// section 8.2), such as the training part. A model knows of correlation, not of causes: an effect says what the model
// would predict, not what would happen.
func Of(ctx context.Context, posterior *bayes.Posterior, data *dataset.Dataset, output int) ([]Effect, error) {
	rows, err := some(posterior, data)
	if err != nil {
		return nil, fmt.Errorf("effect: %w", err)
	}
	var all []Effect
	for column, name := range data.Features {
		values := mat.Col(nil, column, data.X)
		slices.Sort(values)
		e := Effect{Feature: name, To: 1}
		move := rows.category(data.Features, column)
		if move == nil {
			e.From = stat.Quantile(.05, stat.Empirical, values, nil)
			e.To = stat.Quantile(.95, stat.Empirical, values, nil)
			if e.From == e.To { // a rare value, such as a flag
				e.From, e.To = values[0], values[len(values)-1]
			}
			if e.From == e.To {
				continue // a constant does nothing
			}
			move = rows.number(column, e.From, e.To)
		}
		prediction, err := posterior.Predict(ctx, move)
		if err != nil {
			return nil, fmt.Errorf("effect: %w", err)
		}
		if err := e.measure(prediction, output); err != nil {
			return nil, fmt.Errorf("effect of %q: %w", name, err)
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b Effect) int { return cmp.Compare(math.Abs(b.Change), math.Abs(a.Change)) })
	return all, nil
}

// table is the rows that features are moved on.
type table struct{ *mat.Dense }

// some are rows of the data at even steps.
func some(posterior *bayes.Posterior, data *dataset.Dataset) (table, error) {
	switch {
	case posterior == nil:
		return table{}, errors.New("the posterior is nil: check the error of the function that made it")
	case data == nil || data.Rows() == 0:
		return table{}, errors.New("there are no rows to move the features on: give the training part")
	}
	if _, pictures := data.X.(*dataset.Pixels); pictures {
		return table{}, fmt.Errorf("the data %q are pictures, whose pixels are no features", data.Name)
	}
	o := posterior.Origin()
	if err := data.SameOrder(o.FeatureNames, nil, nil); err != nil {
		return table{}, err
	}
	n := min(data.Rows(), mostRows)
	rows := mat.NewDense(n, data.Dims(), nil)
	for i := range n {
		rows.SetRow(i, mat.Row(nil, i*data.Rows()/n, data.X))
	}
	return table{rows}, nil
}

// number are the rows with the feature at from, and then those with it at to: [2 n, d].
func (t table) number(column int, from, to float64) *mat.Dense {
	var twice mat.Dense
	twice.Stack(t, t)
	n, _ := t.Dims()
	for i := range n {
		twice.Set(i, column, from)
		twice.Set(n+i, column, to)
	}
	return &twice
}

// category are the rows whose category has another value, and then those with this one, where the column is one of a
// category's; nil if it is none.
func (t table) category(names []string, column int) *mat.Dense {
	of, _, is := strings.Cut(names[column], "=")
	if !is {
		return nil
	}
	var others []int
	for k, name := range names {
		if strings.HasPrefix(name, of+"=") {
			others = append(others, k)
		}
	}
	var before, after []float64
	n, d := t.Dims()
	for i := range n {
		row := mat.Row(nil, i, t)
		sum := 0.
		for _, k := range others {
			sum += row[k]
		}
		if math.Abs(sum-1) > 1e-9 {
			return nil // no one-hot columns, but numbers of such names
		}
		if row[column] == 1 {
			continue
		}
		before = append(before, row...)
		for _, k := range others {
			row[k] = 0
		}
		row[column] = 1
		after = append(after, row...)
	}
	if len(before) == 0 {
		return nil
	}
	return mat.NewDense(2*len(before)/d, d, append(before, after...))
}

// measure sets what the prediction says, whose second half is that of the moved rows.
func (e *Effect) measure(p bayes.Prediction, output int) error {
	n := p.Rows / 2
	byParticle, byRow := make([]float64, p.Particles), make([]float64, n)
	for j := range p.Particles {
		values, err := outputs(p, j, output)
		if err != nil {
			return err
		}
		for i := range n {
			change := values[n+i] - values[i]
			byParticle[j] += change / float64(n)
			byRow[i] += p.Weights[j] * change
		}
	}
	mean, variance := stat.PopMeanVariance(byParticle, p.Weights)
	e.Change, e.StdDev, e.OverRows = mean, math.Sqrt(max(0, variance)), stat.PopStdDev(byRow, nil)
	return nil
}

// outputs are a particle's means of a target, or probabilities of a class, [rows].
func outputs(p bayes.Prediction, particle, output int) ([]float64, error) {
	if p.Task() == bayes.Regression {
		if output < 0 || output >= p.Columns() {
			return nil, fmt.Errorf("there is no target %d: they are 0 to %d", output, p.Columns()-1)
		}
		all, err := p.ParticleMeans(particle)
		values := make([]float64, p.Rows)
		for i := range all {
			if i%p.Columns() == output {
				values[i/p.Columns()] = all[i]
			}
		}
		return values, err
	}
	if output < 0 || output >= p.Classes() {
		return nil, fmt.Errorf("there is no class %d: they are 0 to %d", output, p.Classes()-1)
	}
	one, err := p.Particle(particle)
	if err != nil {
		return nil, err
	}
	probabilities, err := one.Probabilities()
	values := make([]float64, p.Rows)
	for i, row := range probabilities {
		values[i] = row[output]
	}
	return values, err
}

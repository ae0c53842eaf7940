// Package effect says what each feature of a table does to a posterior's predictions: how much they change, on average
// over the rows, when the feature alone is moved.
package effect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/internal/stats"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Effect is what one feature does.
type Effect struct {
	Feature string // a column of numbers, or a category's value as "column=value"
	// From and To are the values that the feature is moved between: the 5 % and the 95 % quantile of its column. A
	// category is moved from the row's own value, which is then another, to this one: they are 0 and 1.
	From, To float64
	// Change is the mean over rows of the predictive mean at To less that at From, in the target's units, or of a
	// class's probability. StdDev is its standard deviation over the posterior.
	Change, StdDev float64
	// OverRows is the standard deviation of the change over the rows: it is large beside Change where the effect of the
	// feature depends on the others.
	OverRows float64
}

// String is a line for people.
func (e Effect) String() string {
	moved := e.To - e.From
	return fmt.Sprintf("%s, from %.*g to %.*g: %+.*g ± %.2g", e.Feature, dataset.Digits(e.From, moved, 4), e.From,
		dataset.Digits(e.To, moved, 4), e.To, dataset.Digits(e.Change, e.StdDev, 4), e.Change, e.StdDev)
}

// mostRows is the number of rows, drawn by lot, that the effects are the mean of.
const mostRows = 100

// Of returns the effects of all features, the largest first, on one output: a target of a regression, counted from 0,
// or a class. The rows are those on which the other features stay as they are (partial dependence; Friedman 2001,
// section 8.2), such as the training part. A model knows of correlation, not of causes: an effect says what the model
// would predict, not what would happen.
func Of(ctx context.Context, posterior *bayes.Posterior, data *dataset.Dataset, output int) ([]Effect, error) {
	all, err := OfEach(ctx, posterior, data, []int{output})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// OfEach are the effects on several outputs, each as [Of] has them, by the same predictions.
func OfEach(
	ctx context.Context, posterior *bayes.Posterior, data *dataset.Dataset, on []int,
) (all [][]Effect, err error) {
	rows, err := some(posterior, data)
	if err != nil {
		return nil, fmt.Errorf("effect: %w", err)
	}
	all = make([][]Effect, len(on))
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
		outputs, count, err := outputs(prediction)
		if err != nil {
			return nil, fmt.Errorf("effect of %q: %w", name, err)
		}
		for i, output := range on {
			if output < 0 || output >= count {
				return nil, fmt.Errorf("effect of %q: there is no %s %d: they are 0 to %d", name, kind(prediction), output,
					count-1)
			}
			e.measure(prediction, outputs, count, output)
			all[i] = append(all[i], e)
		}
	}
	for _, some := range all {
		slices.SortStableFunc(some, func(a, b Effect) int { return cmp.Compare(math.Abs(b.Change), math.Abs(a.Change)) })
	}
	return all, nil
}

// table is the rows that features are moved on.
type table struct{ *mat.Dense }

// some are rows of the data.
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
	// By lot, so that a period of the rows, such as the hour, does not matter.
	chosen := rand.New(rand.NewPCG(uint64(data.Rows()), 0x656666)).Perm(data.Rows())[:min(data.Rows(), mostRows)]
	slices.Sort(chosen)
	rows := mat.NewDense(len(chosen), data.Dims(), nil)
	for i, row := range chosen {
		rows.SetRow(i, mat.Row(nil, row, data.X))
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
// category's, else nil.
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

// measure sets the change of an output in the prediction, whose second half of rows is the moved ones.
func (e *Effect) measure(p bayes.Prediction, outputs []float64, count, output int) {
	n := p.Rows / 2
	byParticle, byRow := make([]float64, p.Particles), make([]float64, n)
	for j := range p.Particles {
		at := func(row int) float64 { return outputs[(j*p.Rows+row)*count+output] }
		for i := range n {
			change := at(n+i) - at(i)
			byParticle[j] += change / float64(n)
			byRow[i] += p.Weights[j] * change
		}
	}
	mean, variance := stat.PopMeanVariance(byParticle, p.Weights)
	e.Change, e.StdDev, e.OverRows = mean, math.Sqrt(max(0, variance)), stat.PopStdDev(byRow, nil)
}

func kind(p bayes.Prediction) string {
	if p.Task() == dataset.Regression {
		return "target"
	}
	return "class"
}

// outputs are all particles' means of the targets, or probabilities of the classes, [particles, rows, count].
func outputs(p bayes.Prediction) (all []float64, count int, err error) {
	if p.Task() == dataset.Regression {
		all, err = p.ParticleMeans()
		return all, p.Columns(), err
	}
	if err := p.Validate(); err != nil {
		return nil, 0, err
	}
	count = p.Classes()
	all = make([]float64, p.Particles*p.Rows*count)
	for j := range p.Particles {
		for n := range p.Rows {
			stats.Probabilities(p.Distribution(j, n, 0), all[(j*p.Rows+n)*count:][:count])
		}
	}
	return all, count, nil
}

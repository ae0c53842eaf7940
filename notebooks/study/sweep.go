package study

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gobnn/viz"
)

// point is one setting of a method on a data set, of a study that varies settings.
type point struct {
	data, method string
	setting      string // such as "n = 8"; part of the key of kept results
	at           float64
	settings     any // everything that the numbers depend on
	run          func(ctx context.Context, repetition int) (Result, error)
	results      []Result
}

// sweep repeats the points that the options ask for, which it returns with their results, and their cells.
func sweep(ctx context.Context, o Options, id string, reps int, points []point) ([]point, []Cell, error) {
	datas, methods, store, err := o.open(datasOf(points), distinct(points, func(p point) string { return p.method }))
	if err != nil {
		return nil, nil, err
	}
	var done []point
	var cells []Cell
	for _, p := range points {
		if !slices.Contains(datas, p.data) || !slices.Contains(methods, p.method) {
			continue
		}
		key := Key{Study: id, Data: p.data, Method: p.method, Settings: p.settings}
		if p.setting != "" {
			key.Data += ", " + p.setting
		}
		p.results, err = store.Repeat(ctx, key, cmp.Or(o.Reps, reps), p.run)
		cells = append(cells, Cells(key, p.results, nil)...)
		if err != nil {
			return done, cells, err
		}
		done = append(done, p)
	}
	return done, cells, nil
}

// value is the mean of a value over the repetitions of a point, and its standard error.
func (p point) value(name string) (mean, se float64) {
	var values []float64
	for _, r := range p.results {
		values = append(values, r.Values[name])
	}
	return meanSE(values)
}

// curve is a value at the points of a data set and method, with bars of two standard errors up and down, along the
// varied setting or, if named, along another value.
func curve(points []point, data, method, value, along string) viz.Trace {
	t := viz.Trace{Name: method}
	for _, p := range points {
		if p.data != data || p.method != method {
			continue
		}
		at := p.at
		if along != "" {
			at, _ = p.value(along)
		}
		mean, se := p.value(value)
		if math.IsNaN(se) {
			se = 0
		}
		t.Step, t.Value, t.Error = append(t.Step, at), append(t.Value, mean), append(t.Error, 2*se)
	}
	return t
}

// curves are those of all methods that have points.
func curves(points []point, data, value, along string) []viz.Trace {
	var traces []viz.Trace
	for _, p := range points {
		if p.data == data && !slices.ContainsFunc(traces, func(t viz.Trace) bool { return t.Name == p.method }) {
			traces = append(traces, curve(points, data, p.method, value, along))
		}
	}
	return traces
}

// datasOf are the data sets that have points, in order.
func datasOf(points []point) []string {
	return distinct(points, func(p point) string { return p.data })
}

// panelFrame is a panel's, in a grid of two columns.
func panelFrame(title, x, y string) viz.Frame {
	return viz.Frame{Title: shown(title), XLabel: x, YLabel: y, Width: 460, Height: 380}
}

package study

import (
	"cmp"
	"context"
	"slices"
)

// point is one setting of a method on a data set, of a study that varies settings.
type point struct {
	data, method string
	settings     any // everything that the numbers depend on
	run          func(ctx context.Context, repetition int) (Result, error)
	results      []Result
}

// sweep repeats the points that the options ask for, which it returns with their results, and their cells.
func sweep(ctx context.Context, o Options, id string, reps int, points []point) ([]point, []Cell, error) {
	datas, methods, store, err := o.open(distinct(points, func(p point) string { return p.data }), distinct(points, func(p point) string { return p.method }))
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
		p.results, err = store.Repeat(ctx, key, cmp.Or(o.Reps, reps), p.run)
		cells = append(cells, Cells(key, p.results, nil)...)
		if err != nil {
			return done, cells, err
		}
		done = append(done, p)
	}
	return done, cells, nil
}

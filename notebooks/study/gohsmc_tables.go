package study

import (
	"context"
	"slices"
)

// Tables 1, 6 and 10 of Millard et al. 2025, on its two regressions.

// runRegressionLoss is Table 1.
func runRegressionLoss(ctx context.Context, o Options) ([]Cell, error) {
	runs, err := runRegressions(ctx, o)
	var cells []Cell
	for _, r := range runs {
		reported := map[string]Reported{}
		if values := r.loss[r.key.Method]; values != nil {
			reported["test loss"] = reportedAt(values, r.batch)
		}
		cells = append(cells, r.cells("gohsmc.table1", reported, "test loss", "NLPD", "ESS")...)
	}
	return cells, err
}

// runRegressionSeconds is Table 6: the seconds of Table 1's fits, ours on this machine, the paper's on an A100.
func runRegressionSeconds(ctx context.Context, o Options) ([]Cell, error) {
	runs, err := runRegressions(ctx, o)
	var cells []Cell
	for _, r := range runs {
		reported := map[string]Reported{}
		if values := r.regressionData.seconds[r.key.Method]; values != nil {
			reported["seconds"] = reportedAt(values, r.batch)
		}
		cells = append(cells, r.cells("gohsmc.table6", reported, "seconds")...)
	}
	return cells, err
}

// cells are those of some metrics, under the ID of a study.
func (r regressionRun) cells(id string, reported map[string]Reported, metrics ...string) []Cell {
	key := r.key
	key.Study = id
	var some []Cell
	for _, c := range Cells(key, r.results, reported) {
		if slices.Contains(metrics, c.Metric) {
			some = append(some, c)
		}
	}
	return some
}

// timedContenders are the methods of the comparison at equal seconds: the proposals, at the paper's settings.
var timedContenders = []string{"Random Walk", "Langevin", "exact Langevin", "adapted HMC", "NUTS"}

// runEqualSeconds is Table 10's protocol (appendix C): the random walk makes its epochs, and every other method gets,
// repetition by repetition, the seconds that it took.
func runEqualSeconds(ctx context.Context, o Options) ([]Cell, error) {
	runs, err := equalSeconds(ctx, o)
	var cells []Cell
	for _, r := range runs {
		cells = append(cells, r.cells("gohsmc.table10", nil, "test loss", "NLPD", "epochs", "seconds")...)
	}
	return cells, err
}

// equalSeconds repeats the methods that are asked for, and the random walk in any case.
func equalSeconds(ctx context.Context, o Options) ([]regressionRun, error) {
	asked, err := o.SelectMethods(timedContenders)
	if err != nil {
		return nil, err
	}
	return eachRegression(o, func(s regressionData, batch int, _ []string, store *Store) ([]regressionRun, error) {
		all, reps, b, err := s.begin(o, batch)
		if err != nil {
			return nil, err
		}
		defer b.close()
		var walk []Result
		var runs []regressionRun
		for _, c := range all {
			first := walk == nil
			if !first && !slices.Contains(asked, c.name) {
				continue
			}
			c.attempts = c.attempts[:1]
			r, err := s.repeat(ctx, store, b, "gohsmc.table10", batch, c, reps, walk)
			if !first || slices.Contains(asked, c.name) {
				runs = append(runs, r)
			}
			if err != nil {
				return runs, err
			}
			if first { // the others may make more epochs if they are faster
				walk, b.epochs = r.results, 10*b.epochs
			}
		}
		return runs, nil
	})
}

package study

import (
	"context"
	"math"
	"slices"
)

// What a table or figure is of.
var (
	pmcControls = []string{"control 50", "control 400", "control 1600"}
	pmcVariants = []string{pmcPaper, pmcGradFree, pmcCovFree, pmcDM, pmcLight}
	pmcRivals   = []string{"MLE", "MAP", "BBP", "SGLD", "MCDropout", "SAE", pmcPaper, pmcTempered, pmcAnnealed}
	pmcDeep     = []string{"MLE", "MAP", "BBP", "SGLD", "MCDropout", "SAE", pmcLight}

	controlMetrics = []string{"AUC", "AUC std", "precision", "recall", "specificity", "accuracy", "accuracy std", "F1",
		"accuracy of the mean", "AUC of the mean", "NLPD", "ESS", "k-hat"}
	severalMetrics = []string{"AUC", "AUC std", "F1", "accuracy", "accuracy std", "accuracy of the mean", "NLPD", "ESS",
		"k-hat", "prior scale"}
	rocMetrics  = []string{"AUC", "AUC std", "ESS", "accuracy", "k-hat"}
	timeMetrics = []string{"training [s]", "prediction of a row [ms]"}
	deepMetrics = []string{"MSE", "MSE std", "MSE of the mean", "NLPD", "ESS", "k-hat"}
)

// ablationTrials returns the trials of the variants, with the numbers that Table 3 prints where Table 2 prints others
// of the same run.
func ablationTrials(o Options) ([]*trial, error) {
	all, err := pmcnetTrials(pmcControls[2:], pmcVariants)(o)
	for _, t := range all {
		if printed := reportedIn("pmcnet.table3", t.Data)[t.Method]; printed != nil {
			t.paper = printed
		}
	}
	return all, err
}

// only returns the cells of these metrics, in their order, that have a value. The k-hat of particles without weights
// has none.
func only(cells []Cell, metrics []string) (some []Cell) {
	for _, name := range metrics {
		i := slices.IndexFunc(cells, func(c Cell) bool { return c.Metric == name })
		if i >= 0 && !math.IsNaN(cells[i].Ours) {
			some = append(some, cells[i])
		}
	}
	return some
}

// timedTrials returns the trials of table 11. A method is fitted twice. The second fit, for which all is compiled, is
// timed, and its prediction of the test part.
func timedTrials(o Options) (all []*trial, err error) {
	sets := pmcnetSets()
	d := sets[slices.IndexFunc(sets, func(d pmcnetData) bool { return d.name == "ionosphere" })]
	e := o.extent(extent{3, shallow.epochs}, extent{3, shallow.epochs})
	for _, m := range d.methods() {
		paper := reportedIn("pmcnet.table11", d.name)[m.name]
		if paper == nil && !slices.Contains(pmcRivals, m.name) {
			continue
		}
		t := &trial{Key: d.key(m, e.epochs), reps: e.reps, paper: paper}
		t.Study = "pmcnet.table11"
		t.run = func(ctx context.Context, repetition int) (Result, error) {
			scale := d.priorScale(ctx, o, 0)
			r := pmcnetRun{pmcnetData: d, seed: uint64(repetition), epochs: e.epochs, say: o.say}
			return r.timed(ctx, m, scale)
		}
		all = append(all, t)
	}
	return all, nil
}

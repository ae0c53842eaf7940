package study

import (
	"context"
	"fmt"
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
	e := o.extent(extent{1, d.own.epochs}, extent{3, d.paper.epochs})
	for _, m := range d.methods(o.Full) {
		paper := reportedIn("pmcnet.table11", d.name)[m.name]
		if paper == nil && !slices.Contains(pmcRivals, m.name) {
			continue
		}
		t := &trial{Key: d.key(m, e.epochs), reps: e.reps, paper: paper}
		t.Study = "pmcnet.table11"
		t.run = func(ctx context.Context, repetition int) (Result, error) {
			scale, err := d.priorScale(ctx, o, 0)
			if err != nil {
				return Result{}, err
			}
			r := pmcnetRun{pmcnetData: d, seed: uint64(repetition), epochs: e.epochs, say: o.say}
			return r.timed(ctx, m, scale)
		}
		all = append(all, t)
	}
	return all, nil
}

// The notes of what differs from the paper.
var (
	glocal = "means are resampled globally in every second iteration, as in the authors' program, where the paper has " +
		"local resampling alone"
	pmcnetNote = fmt.Sprintf("the paper's std is over %d draws of one run, ours is too, as a metric of its own, and ± "+
		"is over repetitions; \"of the mean\" is the weighted predictive mean; %q has tempered weights and starts from the "+
		"prior, %q is the form for networks with 1000 particles (-full: 2000) and without a bridge", 100, pmcTempered,
		pmcAnnealed) + "; " + glocal
	controlNote = "networks and labels drawn anew, 3 of them (-full: 10); " + pmcnetNote
	sharedNote  = "2 repetitions (-full: 10); the prior's scale by golden section on the validation part, one for all " +
		"methods; features standardised by the training part; on Ionosphere and Glass, with 176 and 166 weights, 100 draws " +
		"of a proposal give a singular covariance, and its off-diagonal elements are shrunk by 0.64 and 0.62, which the " +
		"paper does not do; " + pmcnetNote
	deepNote = "one repetition, 20 epochs and prior N(0, 0.1^2), not searched (-full: 5 and 200 epochs); the noise is " +
		"learnt, where the paper's likelihood is the mean squared error; ± is over repetitions; PMCnet-light's " + glocal
	rotatedNote = "MNIST-C's rotated digits, made from MNIST, 2000 rows for training, 500 for validation and 1000 for " +
		"the test, not 45000, 15000 and 10000, one repetition, 10 epochs and prior N(0, 0.1^2), not searched (-full: all " +
		"rows, 5 repetitions, 200 epochs); SVHN-G and CIFAR10 in grey, whose ResNet-20 has filter response " +
		"normalisation, " +
		"with -data, of files that are not part of the project, CIFAR10 of 300 rows, 3 epochs and 3 iterations; seconds " +
		"with compilation; PMCnet-light's " + glocal
	secondsNote = "on the CPU that computes here, compiled beforehand, the paper's on a V100; one repetition (-full: 3)"
)

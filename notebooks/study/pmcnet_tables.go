package study

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

// pmcnetScores are the paper's numbers of a method: of each score its mean over draws and, if not 0, their standard
// deviation.
type pmcnetScores map[string][2]float64

func scoresOf(names string, values ...float64) pmcnetScores {
	out := pmcnetScores{}
	for i, name := range strings.Fields(names) {
		out[name] = [2]float64{values[i], 0}
	}
	return out
}

// with adds standard deviations, in the same order.
func (s pmcnetScores) with(names string, values ...float64) pmcnetScores {
	for i, name := range strings.Fields(names) {
		v := s[name]
		s[name] = [2]float64{v[0], values[i]}
	}
	return s
}

// timed adds the seconds of training, and the milliseconds of a row's prediction.
func (s pmcnetScores) timed(training, prediction float64) pmcnetScores {
	s["training [s]"], s["prediction of a row [ms]"] = [2]float64{training, 0}, [2]float64{prediction, 0}
	return s
}

// reported returns the numbers by metric.
func (s pmcnetScores) reported() map[string]Reported {
	out := map[string]Reported{}
	for name, v := range s {
		out[name] = Reported{Value: v[0]}
		if v[1] != 0 {
			out[name+" std"] = Reported{Value: v[1]}
		}
	}
	return out
}

const (
	binaryScores = "AUC precision recall specificity accuracy F1"
	severalScore = "AUC F1 accuracy"
)

// pmcnetPaper has tables 2, 3, 6, 7, 9, 10 and 12, by data set and method.
var pmcnetPaper = map[string]map[string]pmcnetScores{
	"control 50": {pmcPaper: scoresOf(binaryScores, .9183, .9347, .7087, .9493, .8308, .7984).
		with(binaryScores, .0191, .0216, .1294, .0264, .0525, .0767)},
	"control 400": {pmcPaper: scoresOf(binaryScores, .9234, .8946, .8412, .9017, .8719, .8663).
		with(binaryScores, .0070, .0364, .0233, .0394, .0161, .0148)},
	"control 1600": {
		pmcPaper: scoresOf(binaryScores, .9498, .9620, .8401, .9483, .8948, .8965).
			with(binaryScores, .0051, .0196, .0202, .0193, .0089, .0098),
		pmcGradFree: scoresOf(binaryScores, .8326, .7380, .8295, .6426, .7347, .7622).
			with(binaryScores, .0955, .1395, .1153, .3046, .1143, .0645),
		pmcCovFree: scoresOf(binaryScores, .9237, .9319, .7988, .9426, .8718, .8596).
			with(binaryScores, .0252, .0410, .0431, .0367, .0330, .0366),
		pmcDM: scoresOf(binaryScores, .7378, .6507, .7946, .4512, .6203, .6660).
			with(binaryScores, .1946, .1587, .2327, .3903, .1153, .0958),
		pmcLight: scoresOf(binaryScores, .9336, .9499, .8552, .9561, .9064, .9000).
			with(binaryScores, .0009, .0095, .0060, .0093, .0021, .0016),
	},
	"ionosphere": {
		"MLE": scoresOf(binaryScores, .9796, .8077, .9545, .8980, .9155, .8750),
		"MAP": scoresOf(binaryScores, .9814, .8333, .9091, .9184, .9155, .8696),
		"BBP": scoresOf(binaryScores, .9137, .8333, .9091, .9184, .9155, .8696),
		"SGLD": scoresOf(binaryScores, .8824, .6959, .8100, .8410, .8314, .7486).
			with(binaryScores, .0110, .0132, .0175, .0083, .0088, .0134),
		"MCDropout": scoresOf(binaryScores, .9159, .8678, .7736, .9465, .8930, .8169).
			with(binaryScores, .0186, .0349, .0514, .0160, .0177, .0335),
		"SAE": scoresOf(binaryScores, .9064, .8268, .8609, .9186, .9007, .8433).
			with(binaryScores, .0036, .0272, .0108, .0151, .0120, .0170),
		pmcPaper: scoresOf(binaryScores, .9833, .8543, .9465, .9410, .9246, .8910).
			with(binaryScores, .0146, .0684, .0216, .0391, .0283, .0393),
	},
	"wine": {
		"MLE": scoresOf(severalScore, .9950, .9028, .8889), "MAP": scoresOf(severalScore, .9999, .9521, .9286),
		"BBP":       scoresOf(severalScore, .9912, .9761, .9444),
		"SGLD":      scoresOf(severalScore, .9776, .9396, .9297).with(severalScore, .0046, .0202, .0234),
		"MCDropout": scoresOf(severalScore, .9857, .8929, .8867).with(severalScore, .0087, .0415, .0402),
		"SAE":       scoresOf(severalScore, .9938, .9669, .9836).with(severalScore, .0151, .0609, .0290),
		pmcPaper:    scoresOf(severalScore, .9974, .9951, .9944).with(severalScore, .0048, .0191, .0215),
	},
	"glass": {
		"MLE": scoresOf(severalScore, .8361, .7240, .6742), "MAP": scoresOf(severalScore, .8347, .7247, .6744),
		"BBP":       scoresOf(severalScore, .8360, .6187, .6512),
		"SGLD":      scoresOf(severalScore, .8498, .7259, .7026).with(severalScore, .0029, .0105, .0095),
		"MCDropout": scoresOf(severalScore, .7877, .4045, .5502).with(severalScore, .0297, .0504, .0486),
		"SAE":       scoresOf(severalScore, .7680, .7087, .7151).with(severalScore, .0053, .1499, .0128),
		pmcPaper:    scoresOf(severalScore, .9220, .8516, .8209).with(severalScore, .0059, .0580, .0264),
	},
	// The paper prints an accuracy of .9998 for SAE on MNIST-C, beside an F1 of .9824, its AUC once more.
	"MNIST-C": {
		"MLE":       scoresOf(severalScore, .9998, .9833, .9834).timed(1760, 2),
		"MAP":       scoresOf(severalScore, .9988, .9547, .9550).timed(1800, 2),
		"BBP":       scoresOf(severalScore, .9998, .9855, .9856).timed(1035, 2),
		"SGLD":      scoresOf(severalScore, .9949, .9115, .9126).with(severalScore, .0008, .0135, .0132).timed(560, 77),
		"MCDropout": scoresOf(severalScore, .9998, .9837, .9838).with(severalScore, 0, .0008, .0008).timed(680, 168),
		"SAE":       scoresOf(severalScore, .9998, .9824, .9998).with(severalScore, 0, .0009, .0003).timed(2100, 261),
		pmcLight:    scoresOf(severalScore, 1, .9913, .9914).with(severalScore, 0, .0002, .0002).timed(1240, 535),
	},
	"SVHN-G": {
		"MLE": scoresOf(severalScore, .9817, .8446, .8591), "MAP": scoresOf(severalScore, .9812, .8483, .8619),
		"BBP":       scoresOf(severalScore, .9826, .8567, .8701),
		"SGLD":      scoresOf(severalScore, .9806, .8451, .8594).with(severalScore, .0002, .0009, .0008),
		"MCDropout": scoresOf(severalScore, .9842, .8506, .8642).with(severalScore, .0002, .0018, .0016),
		"SAE":       scoresOf(severalScore, .9837, .8490, .8621).with(severalScore, .0022, .0103, .0092),
		pmcLight:    scoresOf(severalScore, .9880, .8742, .8867).with(severalScore, 0, .0003, .0002),
	},
	"CIFAR10": {
		"MLE": scoresOf(severalScore, .9951, .9149, .9149), "MAP": scoresOf(severalScore, .9954, .9141, .9142),
		"BBP":       scoresOf(severalScore, .9968, .9310, .9310),
		"SGLD":      scoresOf(severalScore, .9881, .8610, .8600).with(severalScore, .0010, .0069, .0070),
		"MCDropout": scoresOf(severalScore, .9829, .8281, .8287).with(severalScore, .0002, .0023, .0023),
		"SAE":       scoresOf(severalScore, .9622, .7414, .7419).with(severalScore, .0024, .0080, .0080),
		pmcLight:    scoresOf(severalScore, .9972, .9364, .9364).with(severalScore, 0, .0002, .0002),
	},
	"protein": {
		"MLE": scoresOf("MSE", 17.8257), "MAP": scoresOf("MSE", 18.65), "BBP": scoresOf("MSE", 15.9396),
		"SGLD": scoresOf("MSE", 17.4039).with("MSE", .2598), "MCDropout": scoresOf("MSE", 17.3996).with("MSE", .1430),
		"SAE": scoresOf("MSE", 20.2291).with("MSE", .0297), pmcLight: scoresOf("MSE", 15.2049).with("MSE", .0496),
	},
	"naval": {
		"MLE": scoresOf("MSE", 2.5171e-5), "MAP": scoresOf("MSE", 4.6193e-5), "BBP": scoresOf("MSE", 3.1628e-4),
		"SGLD": scoresOf("MSE", 1.6533e-3).with("MSE", .0002), "MCDropout": scoresOf("MSE", 1.6158e-4).with("MSE", 1.2333e-5),
		"SAE": scoresOf("MSE", 5.5056e-3).with("MSE", .0242), pmcLight: scoresOf("MSE", 9.9032e-6).with("MSE", 2.8271e-6),
	},
}

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

// The paper's seconds of training, and milliseconds of a row's prediction (table 11).
var pmcnetSeconds = map[string][2]float64{"MLE": {108, 1}, "MAP": {152, 1}, "BBP": {195, 1}, "SGLD": {17, 43},
	"MCDropout": {10, 89}, "SAE": {392, 112}, pmcPaper: {450, 239}, pmcLight: {250, 239}}

// timedTrials returns the trials of table 11. A method is fitted twice. The second fit, for which all is compiled, is
// timed, and its prediction of the test part.
func timedTrials(o Options) (all []*trial, err error) {
	sets := pmcnetSets()
	d := sets[slices.IndexFunc(sets, func(d pmcnetData) bool { return d.name == "ionosphere" })]
	e := o.extent(extent{1, d.own.epochs}, extent{3, d.paper.epochs})
	for _, m := range d.methods(o.Full) {
		p, printed := pmcnetSeconds[m.name]
		if !printed && !slices.Contains(pmcRivals, m.name) {
			continue
		}
		t := &trial{Key: d.key(m, e.epochs), reps: e.reps}
		t.Study = "pmcnet.table11"
		t.run = func(ctx context.Context, repetition int) (Result, error) {
			scale, err := d.priorScale(ctx, o, 0)
			if err != nil {
				return Result{}, err
			}
			r := pmcnetRun{pmcnetData: d, seed: uint64(repetition), epochs: e.epochs, say: o.say}
			return r.timed(ctx, m, scale)
		}
		if printed {
			t.paper = map[string]Reported{"training [s]": {Value: p[0]}, "prediction of a row [ms]": {Value: p[1]}}
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

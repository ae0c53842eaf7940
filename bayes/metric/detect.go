package metric

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Detection says how well a score tells rows from outside a distribution from rows within it, whatever the threshold.
type Detection struct {
	// ROC has the rows from outside as the positive ones. Its AUC is the AUROC: 1 if all rows from outside score more than
	// all others, 1/2 by chance.
	ROC ROC
	// AUPROut is the area under the curve of precision against recall, as average precision, sum_k (recall_k -
	// recall_(k-1)) precision_k over the thresholds, with the rows from outside as the positive ones. By chance it is
	// their share.
	AUPROut float64
	// FPR95 is the share of rows from outside that pass for rows from within, at the Threshold that lets 95 % of the
	// latter pass (the false positive rate at 95 % true positives of Liu and others 2020, section 4.1). Lower is
	// better.
	FPR95 float64
}

// keptPercent is the share of rows from within that pass a threshold, in percent.
const keptPercent = 95

// Detect measures how well a score, larger for rows more likely from outside, finds them: in are the scores of rows
// from within the distribution, out of rows from outside. Scores may come from Energy, Entropy, MutualInformation or
// LeastConfidence.
func Detect(in, out []float64) (Detection, error) {
	if err := checkBoth(in, out); err != nil {
		return Detection{}, err
	}
	score, outside, within := slices.Concat(in, out), make([]bool, len(in)+len(out)), make([]bool, len(in)+len(out))
	for i := range score {
		outside[i], within[i] = i >= len(in), i < len(in)
	}
	roc, err := newROC(score, outside)
	if err != nil {
		return Detection{}, err
	}
	for i := range score {
		score[i] = -score[i]
	}
	opposite, err := newROC(score, within)
	if err != nil {
		return Detection{}, err
	}
	kept := opposite.TruePositive
	first := sort.Search(len(kept), func(i int) bool { return kept[i] >= keptPercent/100. })
	return Detection{
		ROC: roc, FPR95: opposite.FalsePositive[first],
		AUPROut: roc.averagePrecision(len(out), len(in)),
	}, nil
}

// averagePrecision needs the numbers of rows, since the curve has only their rates.
func (c ROC) averagePrecision(positive, negative int) (area float64) {
	for i := 1; i < len(c.TruePositive); i++ {
		right, wrong := c.TruePositive[i]*float64(positive), c.FalsePositive[i]*float64(negative)
		area += (c.TruePositive[i] - c.TruePositive[i-1]) * right / (right + wrong)
	}
	return area
}

// Threshold is the smallest of the scores of validation rows from within the distribution that at least 95 % of them do
// not exceed (Liu and others 2020, section 3.2): rows with a larger score are taken for rows from outside.
func Threshold(validation []float64) (float64, error) {
	if err := checkScores("validation rows", validation); err != nil {
		return 0, err
	}
	sorted := slices.Sorted(slices.Values(validation))
	return sorted[(keptPercent*len(sorted)+99)/100-1], nil
}

// Decide takes rows whose score exceeds a threshold, such as one of Threshold, for rows from outside, the positive
// ones. in are the scores of rows from within the distribution, out of rows from outside.
//
// Its accuracy, F1, precision, recall and specificity are the columns of Table 5 of the paper of guided OHSMC, where
// both kinds have as many rows. That paper says that it learns its threshold from validation rows from outside. The
// specificities that it prints, .95 for all methods, are of the kind of row that the threshold was learnt from: with
// rows from outside, as it says, the positive rows would be those from within.
func Decide(in, out []float64, threshold float64) (Confusion, error) {
	if err := checkBoth(in, out); err != nil {
		return Confusion{}, err
	}
	if math.IsNaN(threshold) {
		return Confusion{}, errors.New("metric: the threshold is NaN: learn one by Threshold")
	}
	var c Confusion
	for _, v := range in {
		c.add(false, v > threshold)
	}
	for _, v := range out {
		c.add(true, v > threshold)
	}
	return c, nil
}

// checkScores is an error if there are no scores of some rows, or one is NaN.
func checkScores(rows string, scores []float64) error {
	if len(scores) == 0 {
		return fmt.Errorf("metric: there are no scores of %s: there must be at least 1", rows)
	}
	if n := slices.IndexFunc(scores, math.IsNaN); n >= 0 {
		return fmt.Errorf("metric: the score of row %d of %s is NaN", n, rows)
	}
	return nil
}

// checkBoth checks the scores of rows from within the distribution and from outside.
func checkBoth(in, out []float64) error {
	return errors.Join(checkScores("rows from within the distribution", in), checkScores("rows from outside", out))
}

package metric_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/metric"
)

// Scores with ties, of rows from within and from outside.
var (
	tiedIn = []float64{5, 6, 9, 11, 0, 1, 9, 11, 2, 3, 10, 5, 3, 9, 3, 4, 7, 6, 1, 0, 10, 9, 10, 6, 9, 3, 5, 9, 1, 3, 1, 5,
		11, 1, 4, 4, 10, 2, 6, 3}
	tiedOut = []float64{5, 12, 5, 7, 9, 9, 6, 14, 12, 14, 5, 12, 7, 10, 14, 7, 12, 6, 8, 14, 9, 10, 7, 6, 9}
)

// The measures are those of scikit-learn 1.9.1, with y 0 within and 1 outside:
//
//	roc_auc_score(y, s), average_precision_score(y, s)
//	fpr, tpr, _ = roc_curve(1-y, -s, drop_intermediate=False); fpr[np.argmax(tpr >= .95)]
func TestDetect(t *testing.T) {
	for _, c := range []struct {
		name    string
		in, out []float64
		want    []float64
	}{
		{"by hand", []float64{1, 2}, []float64{2, 3}, []float64{.875, 5. / 6, .5}},
		{"apart", []float64{1, 2, 3}, []float64{4, 5}, []float64{1, 1, 0}},
		{"the wrong way", []float64{4, 5}, []float64{1, 2, 3}, []float64{0, 0.47777777777777775, 1}},
		{"equal", []float64{3, 3, 3}, []float64{3, 3}, []float64{.5, .4, 1}},
		{"infinite", []float64{math.Inf(-1), 0}, []float64{math.Inf(1), 1}, []float64{1, 1, 0}},
		{
			"95 % exactly", []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19},
			[]float64{18, 18.5, 30}, []float64{0.9583333333333334, 0.7555555555555555, 1. / 3},
		},
		{"ties", tiedIn, tiedOut, []float64{0.775, 0.6934013572762009, 0.68}},
		{"ties, exchanged", tiedOut, tiedIn, []float64{0.225, 0.4914178558232009, 1}},
		{
			"numbers", []float64{-0.38, 2.04, 0.65, 0.66, -0.51, -1.65, 0.17, 0.11, -1.23, -0.68, -0.07, -0.94, -0.1, 0.1, 0.04,
				-0.51, 0.59, 0.89, 0.32, -0.82, 0.73},
			[]float64{1, 2.38, 0.43, 2.41, 1.48, 0.25, 1.19, 1.55, 1.77, 0.52, 0.39, 1.7, 1.03},
			[]float64{0.8827838827838829, 0.807160813043166, 0.3076923076923077},
		},
	} {
		d, err := metric.Detect(c.in, c.out)
		if err != nil {
			t.Fatal(c.name, err)
		}
		near(t, c.name+": AUROC, AUPROut, FPR95", []float64{d.ROC.AUC(), d.AUPROut, d.FPR95}, c.want, 1e-14)
		// Of the rows' own threshold: at most 5 % of the rows from within are above it, and FPR95 are those it misses.
		threshold, err := metric.Threshold(c.in)
		if err != nil {
			t.Fatal(c.name, err)
		}
		of, err := metric.Decide(c.in, c.out, threshold)
		if err != nil || of.Specificity() < .95 || math.Abs(1-of.Recall()-d.FPR95) > 1e-15 {
			t.Errorf("%s: at %v %+v, %v, want a recall of 1 - %v", c.name, threshold, of, err, d.FPR95)
		}
	}
}

// Of 100 and of 20 rows the threshold leaves out exactly 5 and 1, of 19 none, and of 101 five, in any order.
func TestThreshold(t *testing.T) {
	for _, c := range []struct {
		rows int
		want float64
	}{{1, 0}, {19, 18}, {20, 18}, {21, 19}, {100, 94}, {101, 95}} {
		scores := make([]float64, c.rows)
		for i, v := range rand.New(rand.NewPCG(1, 1)).Perm(c.rows) {
			scores[i] = float64(v)
		}
		before := slices.Clone(scores)
		if got, err := metric.Threshold(scores); err != nil || got != c.want || !slices.Equal(scores, before) {
			t.Errorf("of %d rows: %v, %v, want %v, and the scores left as they are", c.rows, got, err, c.want)
		}
	}
}

// The columns of the guided paper's Table 5 are those of scikit-learn 1.9.1, with y as in TestDetect and z = s > 17:
// accuracy_score(y, z), f1_score, precision_score, recall_score and recall_score(y, z, pos_label=0). Scores equal to
// the threshold are taken for rows from within.
func TestDecide(t *testing.T) {
	in := []float64{12, 13, 12, 16, 16, 19, 19, 17, 3, 0, 9, 6, 17, 15, 8, 11, 11, 17, 0, 9, 13, 9, 18, 19, 16, 9, 17, 1,
		13, 5, 4, 13, 15, 17, 4, 17, 16, 6, 1, 15}
	out := []float64{26, 20, 14, 14, 18, 25, 17, 12, 24, 25, 15, 22, 19, 21, 12, 23, 16, 21, 19, 22, 13, 18, 23, 25, 18,
		12, 25, 21, 23, 14, 19, 27, 27, 17, 23, 13, 26, 16, 18, 29}
	c, err := metric.Decide(in, out, 17)
	if want := (metric.Confusion{TruePositive: 27, FalsePositive: 4, TrueNegative: 36, FalseNegative: 13}); err != nil ||
		c != want {
		t.Errorf("%+v, %v, want %+v", c, err, want)
	}
	near(t, "accuracy, F1, precision, recall, specificity",
		[]float64{c.Accuracy(), c.F1(), c.Precision(), c.Recall(), c.Specificity()},
		[]float64{.7875, 0.7605633802816901, 0.8709677419354839, .675, .9}, 1e-15)
	// Where nothing is found, the shares of nothing are 0.
	c, err = metric.Decide(in, out, 100)
	if err != nil || c.Accuracy() != .5 || c.Precision() != 0 || c.Recall() != 0 || c.F1() != 0 || c.Specificity() != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if none := (metric.Confusion{}); none.Accuracy() != 0 || none.Specificity() != 0 {
		t.Errorf("of no rows: accuracy %v, specificity %v", none.Accuracy(), none.Specificity())
	}
}

func TestDetectErrors(t *testing.T) {
	some, bad := []float64{1, 2}, []float64{1, math.NaN()}
	detect := func(in, out []float64) error { _, err := metric.Detect(in, out); return err }
	decide := func(in, out []float64, at float64) error { _, err := metric.Decide(in, out, at); return err }
	threshold := func(in []float64) error { _, err := metric.Threshold(in); return err }
	for _, c := range []struct {
		err  error
		says string
	}{
		{detect(nil, some), "no scores of rows from within"}, {detect(some, nil), "no scores of rows from outside"},
		{detect(bad, some), "row 1 of rows from within"}, {decide(some, nil, 1), "no scores of rows from outside"},
		{decide(some, some, math.NaN()), "threshold is NaN"},
		{threshold(nil), "no scores of validation rows"}, {threshold(bad), "row 1 of validation rows"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("error %v, want it to say %q", c.err, c.says)
		}
	}
}

// The means over classes are those of scikit-learn 1.9.1 (with p the probabilities and z their largest's class):
// roc_auc_score(y, p, multi_class="ovr", average="macro"), accuracy_score(y, z), f1_score, precision_score and
// recall_score with average="macro", the mean of recall_score(y == c, z == c, pos_label=False), and log_loss(y, p).
func TestMacroAverages(t *testing.T) {
	p := bayes.Prediction{
		Likelihood: bayes.Categorical{}, Particles: 1, Rows: 14, Width: 4, Weights: []float64{1},
		Outputs: []float64{
			0, -1.25, .5, -.1, 1, .75, -.5, -1.1, 1, 1.75, 1.5, -1.1, -1, 1.75, .5, -1.1, 1, -1.25, -.5, -.1, 0, .75, .5, -1.1,
			0, .75, -1.5, .9, -1, -.25, .5, -.1, 0, .75, -.5, -.1, -1, -1.25, .5, -.1, 1, .75, -1.5, .9, 0, -.25, .5, -2.1,
			0, -.25, 2.5, -1.1, 1, -.25, .5, -1.1,
		},
	}
	withDraws(t, 1)
	scores, err := metric.ScoreDraws(p, []float64{0, 1, 2, 3, 0, 0, 3, 2, 1, 3, 3, 0, 2, 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{0.7662878787878789, 0.35714285714285715, 0.3589285714285714, 0.475, 0.375, 0.7886363636363636,
		1.2124133074584216}
	for i, s := range scores {
		near(t, s.Name, s.Values, want[i:i+1], 1e-14)
	}
}

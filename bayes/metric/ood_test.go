package metric_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/metric"
)

// near compares scores with the wanted ones, to a tolerance relative to each.
func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
		return
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tolerance*math.Abs(want[i])) {
			t.Errorf("%s %d: %v, want %v", what, i, got[i], want[i])
		}
	}
}

// weighted is a classification of four rows by three particles, and a fourth without weight, whose logits are not even
// finite.
func weighted() bayes.Prediction {
	nan := math.NaN()
	return bayes.Prediction{
		Likelihood: bayes.Categorical{}, Particles: 4, Rows: 4, Width: 3, Weights: []float64{.5, .2, 0, .3},
		Outputs: []float64{
			2, -1, .5, 1000, 0, -1000, 0, 0, 0, 30, -5, -6,
			-1, .5, 2, 1000, 999, -3, 1, 1, 1, 31, -5, -7,
			nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan,
			0, 3, 0, -700, 10, 20, -2, -2, -2, 90, 0, 0,
		},
	}
}

// The scores are those of scipy 1.17.1 in its logsumexp, softmax and entropy, with weights w, [3], and logits, [3, 4,
// 3]:
//
//	energy = -(w[:,None] * logsumexp(logits, axis=2)).sum(0)
//	p = softmax(logits, axis=2); mean = (w[:,None,None] * p).sum(0)
//	entropy(mean, axis=1); entropy(mean, axis=1) - (w[:,None] * entropy(p, axis=2)).sum(0); 1 - mean.max(1)
//
// but for the last row, where 1 - mean.max(1) has a digit left, and the difference of entropies none.
func TestOutOfDistributionScores(t *testing.T) {
	// The last row: each particle's probability of the other classes, and of both on average.
	others := [3][2]float64{{math.Exp(-35), math.Exp(-36)}, {math.Exp(-36), math.Exp(-38)}, {math.Exp(-90), math.Exp(-90)}}
	weights, mean, own := []float64{.5, .2, .3}, [2]float64{}, 0.
	for j, w := range weights {
		for c, v := range others[j] {
			mean[c] += w * v
			own += w * v * (1 - math.Log(v)) // -p log p, and the largest probability's: 1 less p
		}
	}
	last, all := mean[0]+mean[1], 0.
	for _, v := range mean {
		all += v * (1 - math.Log(v))
	}
	for _, c := range []struct {
		name  string
		score func(bayes.Prediction) ([]float64, error)
		want  []float64
	}{
		{"energy", metric.Energy, []float64{-2.497394794586298, -706.0626659571734, -0.6986122886681099, -48.2}},
		{"entropy", metric.Entropy, []float64{1.080309916168446, 0.8005764349270199, 1.0986122886681096, all}},
		{"mutual information", metric.MutualInformation, []float64{0.5352225046281333, 0.683985999873504, 0, all - own}},
		{"least confidence", metric.LeastConfidence, []float64{0.5857954178281359, 0.353788284273999, 2. / 3, last}},
	} {
		got, err := c.score(weighted())
		if err != nil {
			t.Fatal(err)
		}
		near(t, c.name, got, c.want, 1e-12)
	}
}

func TestOutOfDistributionErrors(t *testing.T) {
	binary, _ := two()
	short := weighted()
	short.Outputs = short.Outputs[1:]
	for _, c := range []struct {
		name  string
		score func(bayes.Prediction) ([]float64, error)
		p     bayes.Prediction
		says  string
	}{
		{"energy of one logit", metric.Energy, binary, "bayes.Bernoulli: take Entropy"},
		{"energy of a regression", metric.Energy, regression([]float64{1}, 1, []float64{1}), "bayes.Gaussian"},
		{"energy", metric.Energy, short, "47 outputs"},
		{"energy of nothing", metric.Energy, bayes.Prediction{}, "no Likelihood"},
		{"entropy of a regression", metric.Entropy, regression([]float64{1}, 1, []float64{1}), "for classification"},
	} {
		if _, err := c.score(c.p); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want it to say %q", c.name, err, c.says)
		}
	}
	if _, err := metric.Entropy(binary); err != nil { // the probabilities of two classes are there
		t.Error(err)
	}
}

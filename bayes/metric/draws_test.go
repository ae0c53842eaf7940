package metric_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/metric"
)

// AUC is the share of pairs of a positive and a negative row in which the former scores more, ties by half; the curve
// goes from (0, 0) to (1, 1), and is linear between its points.
func TestROC(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var score []float64
	var positive []bool
	for range 60 {
		score, positive = append(score, float64(r.IntN(12))), append(positive, r.IntN(3) == 0)
	}
	pairs, won := 0., 0.
	for i := range score {
		for j := range score {
			if positive[i] && !positive[j] {
				pairs++
				switch {
				case score[i] > score[j]:
					won++
				case score[i] == score[j]:
					won += .5
				}
			}
		}
	}
	c, err := metric.NewROC(score, positive)
	if err != nil || math.Abs(c.AUC()-won/pairs) > 1e-12 {
		t.Errorf("AUC %v, want %v (%v)", c.AUC(), won/pairs, err)
	}
	if c.At(1) != 1 || c.FalsePositive[0] != 0 || c.TruePositive[0] != 0 {
		t.Errorf("the curve ends at %v and begins at %v", c.At(1), c.TruePositive[0])
	}
	c, err = metric.NewROC([]float64{.9, .8, .7, .1}, []bool{true, false, true, false})
	if err != nil || c.AUC() != .75 || c.At(0) != .5 || c.At(.25) != .5 || c.At(.5) != 1 || c.At(.75) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := metric.NewROC([]float64{1, 2}, []bool{true, true}); err == nil ||
		!strings.Contains(err.Error(), "needs both") {
		t.Errorf("one class: error %v", err)
	}
}

// two is a binary classification of four rows by three particles, with logits, one of which has no weight.
func two() (bayes.Prediction, []float64) {
	return bayes.Prediction{
		Likelihood: bayes.Bernoulli{}, Particles: 3, Rows: 4, Width: 1, Weights: []float64{.25, .75, 0},
		Outputs: []float64{
			2, 1, -1, -2, // rows 0 and 1 are taken for class 1
			2, -1, 1, -2, // rows 0 and 2
			9, 9, 9, 9,
		},
	}, []float64{1, 1, 0, 0}
}

// withDraws scores so many draws in a test.
func withDraws(t *testing.T, count int) {
	before := *metric.ScoredDraws
	t.Cleanup(func() { *metric.ScoredDraws = before })
	*metric.ScoredDraws = count
}

// Scores of single draws, by hand: the first particle is right in all rows, the second in two of four. They are drawn
// by their weights, and one without weight never.
func TestScoreDraws(t *testing.T) {
	p, y := two()
	const draws = 4000
	withDraws(t, draws)
	scores, err := metric.ScoreDraws(p, y, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Of the second particle: of class 0 are the rows of the logits 1 and -2: 3 of 4 pairs are in order.
	for i, want := range []struct {
		name          string
		first, second float64
	}{
		{"AUC", 1, .75}, {"accuracy", 1, .5}, {"F1", 1, .5}, {"precision", 1, .5}, {"recall", 1, .5}, {"specificity", 1, .5},
		{"NLPD", nlpd(2, 1, 1, 2), nlpd(2, -1, -1, 2)},
	} {
		s := scores[i]
		if s.Name != want.name || len(s.Values) != draws {
			t.Fatalf("%s with %d values", s.Name, len(s.Values))
		}
		first := 0.
		for _, v := range s.Values {
			switch {
			case math.Abs(v-want.first) < 1e-12:
				first++
			case math.Abs(v-want.second) > 1e-12:
				t.Fatalf("%s: %v, want %v or %v", s.Name, v, want.first, want.second)
			}
		}
		if share := first / draws; math.Abs(share-.25) > .04 { // six standard errors
			t.Errorf("%s: the first particle was drawn with a share of %v, want .25", s.Name, share)
		}
		share := first / draws
		mean := share*want.first + (1-share)*want.second
		sd := math.Abs(want.first-want.second) * math.Sqrt(share*(1-share)*draws/(draws-1))
		if math.Abs(s.Mean()-mean) > 1e-9 || math.Abs(s.StdDev()-sd) > 1e-9 {
			t.Errorf("%s: %v ± %v, want %v ± %v", s.Name, s.Mean(), s.StdDev(), mean, sd)
		}
	}
	e, err := metric.ROCEnvelope(p, y, 5)
	if err != nil {
		t.Fatal(err)
	}
	// The first curve is 1 throughout, the second .5 up to a false positive rate of .5.
	if len(e.Bands) != 3 || e.Bands[0].Low[1] != .5 || e.Bands[0].High[1] != 1 || e.Bands[2].Low[3] != 1 ||
		math.Abs(e.Mean[1]-(.25+.75*.5)) > .02 || e.FalsePositive[4] != 1 {
		t.Errorf("%+v", e)
	}
	if _, err := metric.ROCEnvelope(p, y, 1); err == nil || !strings.Contains(err.Error(), "at 1 false") {
		t.Errorf("a single rate: %v", err)
	}
}

// nlpd is the mean of log(1 + exp(-l)) over the logits of what came.
func nlpd(logits ...float64) float64 {
	sum := 0.
	for _, l := range logits {
		sum += math.Log1p(math.Exp(-l)) / float64(len(logits))
	}
	return sum
}

// Of a regression the scores are MSE and NLPD in the target's units; of several classes see TestMacroAverages.
func TestScoreDrawsOfOthers(t *testing.T) {
	p := bayes.Prediction{
		Likelihood: bayes.Gaussian{StdDev: 1}, Particles: 1, Rows: 2, Width: 1, Weights: []float64{1},
		Outputs: []float64{1, 3},
	}
	scores, err := metric.ScoreDraws(p, []float64{0, 5}, 0)
	if err != nil || len(scores) != 2 || scores[0].Name != "MSE" || math.Abs(scores[0].Mean()-2.5) > 1e-9 || math.Abs(
		scores[1].Mean()-(math.Log(2*math.Pi)/2+2.5/2)) > 1e-9 {
		t.Errorf("%v, %v", scores, err)
	}
	// The squared errors of two targets have no common unit.
	p.Rows, p.Width, p.Size = 1, 2, 2
	if _, err := metric.ScoreDraws(p, []float64{0, 5}, 0); err == nil ||
		!strings.Contains(err.Error(), "Prediction.Of") {
		t.Errorf("two targets: error %v", err)
	}
	second, err := p.Of(1)
	if err != nil {
		t.Fatal(err)
	}
	scores, err = metric.ScoreDraws(second, []float64{5}, 0)
	if err != nil || math.Abs(scores[0].Mean()-4) > 1e-9 {
		t.Errorf("the second of two targets: %v, %v", scores, err)
	}
}

package metric

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/sampleuv"
)

// This file scores the draws of a posterior one by one. R of them are resampled by their weights, each predicts by
// itself, and the distribution of the R scores is reported (PMCnet, Algorithm 2). It says how good one draw is, not how
// good the posterior's prediction is, which averages over draws and is better: for that, see [Scores].

// scoredDraws is R, the number of draws that are resampled by their weights; a variable for the tests.
var scoredDraws = 100

// positive is the positive class of a binary classification, for F1, precision, recall, specificity and the ROC, as the
// authors of PMCnet take it.
const positive = 0

// The levels of the intervals that are reported.
var drawLevels = []float64{.8, .95, .99}

// DrawScore is a score of each of R draws.
type DrawScore struct {
	Name   string
	Values []float64 // [R]
}

// Mean is the mean of the scores of the draws.
func (s DrawScore) Mean() float64 { return stat.Mean(s.Values, nil) }

// StdDev is the standard deviation of the scores of the draws; NaN for a single draw.
func (s DrawScore) StdDev() float64 { return stat.StdDev(s.Values, nil) }

// ScoreDraws scores 100 draws, resampled by their weights with the given seed, one by one. y are the rows' targets,
// [Rows, Targets], or their classes. For a classification the scores are accuracy, NLPD, and AUC, F1, precision, recall
// and specificity of class 0, as the authors of PMCnet take it. With more than two classes these last five are means
// over the classes, each against the others (macro average). The mean leaves out a class that no row has, or all rows
// have, even where rows are predicted to be of it. For a regression the scores are MSE and NLPD, in the prediction's
// units; take one of several targets by bayes.Prediction.Of. Precision and F1 of a class that no row is predicted to be
// are 0.
func ScoreDraws(p bayes.Prediction, y []float64, seed uint64) ([]DrawScore, error) {
	draws, err := resampled(p, y, seed)
	if err != nil {
		return nil, err
	}
	if k := p.Columns(); k > 1 { // their errors have different units
		return nil, fmt.Errorf("metric: ScoreDraws is for one target, but the prediction has %d: take one by "+
			"Prediction.Of", k)
	}
	var names []string
	var all [][]float64 // scores of each draw
	known := map[int][]float64{}
	for _, j := range draws {
		if known[j] == nil {
			one, err := p.Particle(j)
			if err != nil {
				return nil, fmt.Errorf("metric: %w", err)
			}
			if names, known[j], err = scoresOf(one, y); err != nil {
				return nil, err
			}
		}
		all = append(all, known[j])
	}
	out := make([]DrawScore, len(names))
	for i, name := range names {
		out[i].Name = name
		for _, scores := range all {
			out[i].Values = append(out[i].Values, scores[i])
		}
	}
	return out, nil
}

// Envelope is the distribution of the ROC curves of R draws at each false positive rate.
type Envelope struct {
	FalsePositive []float64 // [G]
	Mean          []float64 // [G]: mean true positive rate of the draws
	Bands         []Band    // 80, 95 and 99 %
}

// Band is the central interval, at each false positive rate, that holds the share Level of the curves.
type Band struct {
	Level     float64
	Low, High []float64 // [G]
}

// ROCEnvelope computes pointwise intervals of the ROC curves of 100 draws, resampled by their weights, at so many false
// positive rates, equally spaced from 0 to 1, for classification: of class 0 against all others.
func ROCEnvelope(p bayes.Prediction, y []float64, points int) (Envelope, error) {
	if points < 2 {
		return Envelope{}, fmt.Errorf("metric: ROCEnvelope at %d false positive rates: there must be at least 2", points)
	}
	draws, err := resampled(p, y, 0)
	if err != nil {
		return Envelope{}, err
	}
	curves := map[int]ROC{}
	for _, j := range draws {
		if _, ok := curves[j]; ok {
			continue
		}
		one, err := p.Particle(j)
		if err != nil {
			return Envelope{}, fmt.Errorf("metric: %w", err)
		}
		if curves[j], err = ROCOf(one, y); err != nil {
			return Envelope{}, err
		}
	}
	var e Envelope
	for _, level := range drawLevels {
		e.Bands = append(e.Bands, Band{Level: level})
	}
	for g := range points {
		var at []float64
		rate := float64(g) / float64(points-1)
		for _, j := range draws {
			at = append(at, curves[j].At(rate))
		}
		e.FalsePositive, e.Mean = append(e.FalsePositive, rate), append(e.Mean, stat.Mean(at, nil))
		slices.Sort(at)
		for i := range e.Bands {
			b := &e.Bands[i]
			b.Low = append(b.Low, stat.Quantile((1-b.Level)/2, stat.LinInterp, at, nil))
			b.High = append(b.High, stat.Quantile((1+b.Level)/2, stat.LinInterp, at, nil))
		}
	}
	return e, nil
}

// resampled draws particles by their weights.
func resampled(p bayes.Prediction, y []float64, seed uint64) ([]int, error) {
	if err := p.ValidateTarget(y); err != nil {
		return nil, fmt.Errorf("metric: %w", err)
	}
	if p.Censored != nil {
		return nil, errors.New("metric: the scores of draws are not known where targets are censored: take NLPD")
	}
	by := sampleuv.NewWeighted(p.Weights, rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	draws := make([]int, scoredDraws)
	for r := range draws {
		j, _ := by.Take()
		draws[r] = j
		by.Reweight(j, p.Weights[j]) // with replacement
	}
	return draws, nil
}

// scoresOf computes the scores of the prediction of one draw.
func scoresOf(one bayes.Prediction, y []float64) (names []string, scores []float64, err error) {
	logDensity, err := one.LogDensity(y)
	if err != nil {
		return nil, nil, fmt.Errorf("metric: %w", err)
	}
	nlpd := -stat.Mean(logDensity, nil)
	if one.Task() == dataset.Regression {
		mean, err := one.Mean()
		if err != nil {
			return nil, nil, fmt.Errorf("metric: %w", err)
		}
		d := floats.Distance(mean, y, 2)
		return []string{"MSE", "NLPD"}, []float64{d * d / float64(len(y)), nlpd}, nil
	}
	probabilities, err := one.Probabilities()
	if err != nil {
		return nil, nil, fmt.Errorf("metric: %w", err)
	}
	classes := []int{positive}
	if one.Classes() > 2 {
		classes = nil
		for c := range one.Classes() {
			classes = append(classes, c)
		}
	}
	names = []string{"AUC", "accuracy", "F1", "precision", "recall", "specificity", "NLPD"}
	scores = make([]float64, len(names))
	scores[6] = nlpd
	counted := 0. // classes that some rows are of and others are not
	for _, class := range classes {
		c, err := rocOf(probabilities, y, class)
		if err != nil && len(classes) > 1 {
			continue // all rows are of this class, or none is
		}
		if err != nil {
			return nil, nil, err
		}
		counted++
		t := newConfusion(probabilities, y, class)
		floats.Add(scores, []float64{c.AUC(), 0, t.F1(), t.Precision(), t.Recall(), t.Specificity(), 0})
	}
	if counted == 0 {
		return nil, nil, fmt.Errorf("metric: all %d rows are of the class %v: AUC, F1, precision, recall and specificity "+
			"need rows of two classes", len(y), y[0])
	}
	for i := range scores[:6] {
		scores[i] /= counted
	}
	right := 0.
	for n, p := range probabilities {
		if floats.MaxIdx(p) == int(y[n]) {
			right++
		}
	}
	scores[1] = right / float64(len(y))
	return names, scores, nil
}

package auto

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/metric"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Details say what the method did, and what it gained.
type Details struct {
	Folds  int // that the rows were cut into
	Scored int // that were trained, less than Folds if the run was cancelled
	// Networks and Draws are the NLPD of rows that were left out, by their Weights: by the networks, and by the draws of
	// the chains that began at them, in the folds that have both; in the target's units. Without draws that of Draws is
	// NaN.
	Networks, Draws metric.Estimate
	// Weight is the share of the draws in the posterior, from 0, the networks alone, to 1.
	Weight float64
	// Prior is the share of those trained with the prior among the networks, from 0, those of maximum likelihood alone,
	// to 1.
	Prior float64
	// AllRows is the share of the draws that are of the posterior given all rows, 0 or 1, or between where the budget left
	// few of these; the others are of the folds' chains, each given four fifths.
	AllRows float64
	// Noise is what the noise of all particles is multiplied by, since rows left out have more density so; 1 elsewhere.
	Noise float64
	// Added is how much the draws lower the NLPD, by their weight, with the standard error of the paired differences.
	Added metric.Estimate

	training, sampling time.Duration
	// firstDraw is about how long the chains of the last fold take until they have a draw, by those of the folds before,
	// or if there are none by what its training took.
	firstDraw time.Duration
	// left is what is left of the budget: too little for what comes next, or of no use, where the draws of the first folds
	// add nothing, or a round of the chains gained less than .01 nats.
	left time.Duration

	model    *bayes.Model  // of the chains; nil before the first
	step     time.Duration // of the last fold's chains; 0 before the first
	compiled time.Duration // what the first training took to the end of its first epoch
	useless  bool          // the chains of the folds so far add nothing
	doubts   fit.Doubts    // of the chains on all rows
}

// String says in two lines what was done, for people.
func (d *Details) String() string {
	s := fmt.Sprintf("%d of %d folds: trained in %.0f s, sampled in %.0f s; NLPD of rows left out: networks %.3f ± %.3f",
		d.Scored, d.Folds, d.training.Seconds(), d.sampling.Seconds(), d.Networks.Value, d.Networks.SamplingStdErr)
	if d.Folds == 1 {
		s = "one split" + strings.TrimPrefix(s, "1 of 1 folds")
	}
	if d.left > time.Second {
		s = strings.Replace(s, ";", fmt.Sprintf(", %.0f s are left;", d.left.Seconds()), 1)
	}
	if d.Noise != 1 && d.Noise != 0 {
		s += fmt.Sprintf("; by these the noise is multiplied by %.2f", d.Noise)
	}
	switch {
	case math.IsNaN(d.Draws.Value) && d.model != nil:
		return s + "\nno draws: the chains, compiled first, had none when the budget ended; take more seconds"
	case math.IsNaN(d.Draws.Value):
		return s + fmt.Sprintf("\nno draws: in each fold the first would take about %.0f s, which the budget does not leave",
			d.firstDraw.Seconds())
	case d.Weight == 0:
		return s + fmt.Sprintf(", draws %.3f ± %.3f\nsampling added nothing: the posterior is the ensemble", d.Draws.Value,
			d.Draws.SamplingStdErr)
	}
	s += fmt.Sprintf(", draws %.3f ± %.3f\nsampling lowers it by %.3f ± %.3f; the draws have weight %.2f",
		d.Draws.Value, d.Draws.SamplingStdErr, d.Added.Value, d.Added.SamplingStdErr, d.Weight)
	if d.AllRows > 0 {
		s += fmt.Sprintf(", and %.0f %% of them are given all rows", 100*d.AllRows)
	}
	return s
}

// particles are a fold's part of the mixture, judged by the rows that the fold leaves out.
type particles struct {
	*bayes.Posterior
	density []float64 // log p(y_n | x_n), of each row
}

// predict is the prediction of rows. It takes little time, and a cancelled run needs it too.
func predict(p *bayes.Posterior, rows *dataset.Dataset) (bayes.Prediction, error) {
	prediction, err := p.Predict(context.Background(), rows.X)
	if err != nil {
		return prediction, err
	}
	return prediction.OfRows(rows)
}

// judged are particles with what they predict of the rows.
func judged(p *bayes.Posterior, rows *dataset.Dataset) (*particles, error) {
	prediction, err := predict(p, rows)
	if err != nil {
		return nil, err
	}
	judged := &particles{Posterior: p}
	if judged.density, err = prediction.LogDensity(rows.Y); err != nil {
		return nil, err
	}
	return judged, nil
}

// weigh finds the weights of the networks that are trained with the prior, beside the others, and of the draws, beside
// both.
func (d *Details) weigh(all []*fold) {
	var none, shrunk, both, draws, ofShrunk, ofDraws []float64
	for _, one := range all {
		if one.shrunk != nil {
			none, shrunk = append(none, one.networks.density...), append(shrunk, one.shrunk.density...)
			ofShrunk = append(ofShrunk, one.weights...)
		}
	}
	d.Prior, _, _ = weightOf(none, shrunk, ofShrunk)
	d.Weight = 0
	for _, one := range all {
		if one.sampled != nil {
			both, draws = append(both, one.mixed(d.weights(one))...), append(draws, one.sampled.density...)
			ofDraws = append(ofDraws, one.weights...)
		}
	}
	d.Networks, d.Draws = d.leftOut(all), nlpd(draws, ofDraws)
	raw := 0.
	d.Weight, raw, d.Added = weightOf(both, draws, ofDraws)
	d.useless = len(draws) > 0 && raw < least
}

// leftOut is the NLPD of all rows that folds leave out, by their parts with the weights so far.
func (d *Details) leftOut(all []*fold) metric.Estimate {
	var mixed, weights []float64
	for _, one := range all {
		mixed, weights = append(mixed, one.mixed(d.weights(one))...), append(weights, one.weights...)
	}
	return nlpd(mixed, weights)
}

// least is the smallest weight that a part of the mixture has.
const least = .01

// weightOf is the weight of b beside a, log-densities of rows, that gives the rows the largest density, or 0 if that
// adds no more than a nat to all rows together; the weight before that is asked; and what a row gains.
func weightOf(a, b, weights []float64) (w, raw float64, added metric.Estimate) {
	if len(b) == 0 {
		return 0, 0, metric.Estimate{}
	}
	raw = stacked(a, b, weights)
	gains := make([]float64, len(b))
	for i := range gains {
		gains[i] = floats.LogSumExp([]float64{a[i] + math.Log1p(-raw), b[i] + math.Log(raw)}) - a[i]
	}
	added = mean(gains, weights)
	if total := added.Value * float64(len(b)); raw < least || !(total > 1) { // one weight gains 1/2 by chance
		return 0, raw, metric.Estimate{}
	}
	return raw, raw, added
}

// weights are the weights of a fold's networks, of those with the prior, and of its draws.
func (d *Details) weights(one *fold) (w [3]float64) {
	if one.shrunk != nil {
		w[1] = d.Prior
	}
	if one.sampled != nil {
		w[2] = d.Weight
	}
	w[0], w[1] = (1-w[1])*(1-w[2]), w[1]*(1-w[2])
	return w
}

// mixed is the log-density of each row that a fold leaves out, by its parts with these weights.
func (o *fold) mixed(weights [3]float64) []float64 {
	rows, terms := make([]float64, len(o.networks.density)), [3]float64{}
	for i := range rows {
		for k, p := range []*particles{o.networks, o.shrunk, o.sampled} {
			if terms[k] = math.Inf(-1); weights[k] > 0 && p != nil {
				terms[k] = math.Log(weights[k]) + p.density[i]
			}
		}
		rows[i] = floats.LogSumExp(terms[:])
	}
	return rows
}

// stacked is the weight w of b that maximises sum_i log((1-w) exp a_i + w exp b_i), which is concave, by bisection of
// its slope. The rows' weights, nil if all are alike, multiply the summands.
func stacked(a, b, weights []float64) float64 {
	slope := func(w float64) (sum float64) {
		for i := range a {
			ratio := math.Expm1(min(b[i]-a[i], 700)) // p_b/p_a - 1
			each := ratio / (1 + w*ratio)
			if weights != nil {
				each *= weights[i]
			}
			sum += each
		}
		return sum
	}
	low, high := 0., 1.
	for range 50 {
		if middle := (low + high) / 2; slope(middle) > 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// nlpd is minus the mean of log-densities, by the rows' weights.
func nlpd(logDensities, weights []float64) metric.Estimate {
	e := mean(logDensities, weights)
	e.Value = -e.Value
	return e
}

// mean returns the weighted mean and its standard error. nil weights are equal; no values give NaN.
func mean(values, weights []float64) metric.Estimate {
	m, variance := stat.PopMeanVariance(values, weights)
	n := float64(len(values))
	if weights != nil { // rows that are as good as these by their weights
		n = math.Pow(floats.Sum(weights), 2) / floats.Dot(weights, weights)
	}
	return metric.Estimate{Value: m, SamplingStdErr: math.Sqrt(variance / (n - 1))}
}

package auto

import (
	"fmt"
	"math"
	"time"

	"gobnn/bayes"
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
	// AllRows says that the posterior's draws are of the posterior given all rows; else the budget left them those of the
	// folds, each given four fifths.
	AllRows bool
	// Added is how much the draws lower the NLPD, by their weight, with the standard error of the paired differences.
	Added    metric.Estimate
	Training time.Duration
	Sampling time.Duration
	// FirstDraw is about how long the chains of the last fold take until they have a draw, by those of the folds before,
	// or if there are none by what its training took.
	FirstDraw time.Duration

	model   *bayes.Model  // of the chains; nil before the first
	step    time.Duration // of the last fold's chains; 0 before the first
	byPrior bool          // the networks are trained with the prior
}

// String says in two lines what was done, for people.
func (d *Details) String() string {
	s := fmt.Sprintf("%d folds: trained in %.0f s, sampled in %.0f s; NLPD of rows left out: networks %.3f ± %.3f",
		d.Scored, d.Training.Seconds(), d.Sampling.Seconds(), d.Networks.Value, d.Networks.SamplingStdErr)
	switch {
	case math.IsNaN(d.Draws.Value) && d.model != nil:
		return s + "\nno draws: the chains, compiled first, had none when the budget ended; take more Seconds"
	case math.IsNaN(d.Draws.Value):
		return s + fmt.Sprintf("\nno draws: in each fold the first would take about %.0f s, which the budget does not leave",
			d.FirstDraw.Seconds())
	case d.Weight == 0:
		return s + fmt.Sprintf(", draws %.3f ± %.3f\nsampling added nothing: the posterior is the ensemble", d.Draws.Value,
			d.Draws.SamplingStdErr)
	}
	s += fmt.Sprintf(", draws %.3f ± %.3f\nsampling lowers it by %.3f ± %.3f; the draws have weight %.2f",
		d.Draws.Value, d.Draws.SamplingStdErr, d.Added.Value, d.Added.SamplingStdErr, d.Weight)
	if d.AllRows {
		s += ", and are given all rows"
	}
	return s
}

// weigh finds the weight of the draws: that which gives the left out rows the largest density, or 0 if that adds no
// more than a nat to all rows together.
func (d *Details) weigh(all []*fold) {
	var networks, weights, both, draws, ofDraws []float64
	for _, one := range all {
		networks, weights = append(networks, one.byNetworks...), append(weights, one.weights...)
		if one.sampled != nil {
			both, draws = append(both, one.byNetworks...), append(draws, one.bySampled...)
			ofDraws = append(ofDraws, one.weights...)
		}
	}
	d.Networks, d.Draws = nlpd(networks, weights), nlpd(draws, ofDraws)
	if len(draws) == 0 {
		return
	}
	d.Weight = stacked(both, draws, ofDraws)
	gains := make([]float64, len(draws))
	for i := range gains {
		gains[i] = mixed(both[i], draws[i], d.Weight) - both[i]
	}
	d.Added = mean(gains, ofDraws)
	if total := d.Added.Value * float64(len(draws)); d.Weight < .01 || !(total > 1) { // one weight gains 1/2 by chance
		d.Weight, d.Added = 0, metric.Estimate{}
	}
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

// mixed is log((1-w) exp a + w exp b).
func mixed(a, b, w float64) float64 {
	return floats.LogSumExp([]float64{a + math.Log1p(-w), b + math.Log(w)})
}

// nlpd is minus the mean of log-densities, by the rows' weights.
func nlpd(logDensities, weights []float64) metric.Estimate {
	e := mean(logDensities, weights)
	e.Value = -e.Value
	return e
}

// mean is that of values, by the rows' weights, nil if all are alike, with its standard error; NaN of none.
func mean(values, weights []float64) metric.Estimate {
	m, variance := stat.PopMeanVariance(values, weights)
	n := float64(len(values))
	if weights != nil { // rows that are as good as these by their weights
		n = math.Pow(floats.Sum(weights), 2) / floats.Dot(weights, weights)
	}
	return metric.Estimate{Value: m, SamplingStdErr: math.Sqrt(variance / (n - 1))}
}

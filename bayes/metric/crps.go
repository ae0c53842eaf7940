package metric

import (
	"fmt"

	"gobnn/bayes"
)

// CRPS is the continuous ranked probability score, the mean over rows of
//
//	integral (F(x) - 1{x >= y})^2 dx = E|X - y| - E|X - X'| / 2
//
// where F is the predictive distribution function, of the mixture of all particles, and X and X' are independent draws
// of it (Gneiting and Raftery 2007, eq. 20 and 21), for regression, in the target's units. Lower is better; of a point
// it is the absolute error. Unlike the NLPD it weighs a target far outside by its distance only. It is computed to
// within 0.01 %.
func CRPS(p bayes.Prediction, y []float64) (Estimate, error) { return one(newCRPS(), p, y) }

func newCRPS() *measure {
	return ofPenalty("CRPS", penalty{below: [3]float64{1}, above: [3]float64{1}})
}

// QuantileWeight is a weight of the quantiles in [WeightedCRPS], by their level a.
type QuantileWeight int

// The weights of Gneiting and Ranjan (2011, Table 4).
const (
	Centre    QuantileWeight = iota // a (1 - a)
	Tails                           // (2a - 1)^2
	LeftTail                        // (1 - a)^2
	RightTail                       // a^2
)

// WeightedCRPS is the quantile-weighted CRPS, the mean over rows of
//
//	2 integral (1{y <= q(a)} - a) (q(a) - y) v(a) da
//
// over the levels a from 0 to 1, where q(a) is the predictive a-quantile and v(a) the weight (Gneiting and Ranjan 2011,
// Comparing density forecasts using threshold- and quantile-weighted scoring rules, eq. 17), for regression, in the
// target's units. It says how good one part of the predictive distribution is, and stays a proper score, which a mean
// over rows with large targets is not. With v = 1 it is the CRPS; Tails and 4 Centre sum to it. It is computed to
// within 0.01 %.
func WeightedCRPS(p bayes.Prediction, y []float64, weight QuantileWeight) (Estimate, error) {
	return one(newWeightedCRPS(weight), p, y)
}

func newWeightedCRPS(weight QuantileWeight) *measure {
	if weight < Centre || weight > RightTail {
		return &measure{err: fmt.Errorf("metric: the weight of WeightedCRPS is %d: it must be Centre, Tails, LeftTail or "+
			"RightTail", weight)}
	}
	return ofPenalty([]string{"CRPS of the centre", "CRPS of the tails", "CRPS of the left tail",
		"CRPS of the right tail"}[weight], penalties[weight])
}

// penalty is a score of a distribution function F, the integral of g(F(x)) below the target and of h(1 - F(x)) above
// it. The weighted CRPS is one: by exchanging the integrals over levels and over x, with
//
//	g(f) = 2 integral_0^f a v(a) da,   h(s) = 2 integral_0^s a v(1-a) da.
type penalty struct{ below, above [3]float64 } // coefficients of the square, the cube and the fourth power in g and h

var penalties = [...]penalty{
	Centre:    {below: [3]float64{0, 2. / 3, -.5}, above: [3]float64{0, 2. / 3, -.5}},
	Tails:     {below: [3]float64{1, -8. / 3, 2}, above: [3]float64{1, -8. / 3, 2}},
	LeftTail:  {below: [3]float64{1, -4. / 3, .5}, above: [3]float64{0, 0, .5}},
	RightTail: {below: [3]float64{0, 0, .5}, above: [3]float64{1, -4. / 3, .5}},
}

func (p penalty) of(f float64, above bool) float64 {
	c := p.below
	if above {
		f, c = 1-f, p.above
	}
	return f * f * (c[0] + f*(c[1]+f*c[2]))
}

func ofPenalty(name string, p penalty) *measure {
	s := &integral{penalty: p}
	return &measure{name: name, tasks: regressionOnly, scorer: &rowMean{score: s.score}}
}

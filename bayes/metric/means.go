package metric

import (
	"fmt"
	"math"
	"strconv"

	"gobnn/bayes"
)

// NLPD is the negative log predictive density, -mean_n log sum_j w_j p(y_n | f_j(x_n)): in nats per row. For regression
// the density is in the prediction's units: raw units, or standardised ones for a prediction from
// [bayes.Prediction.Standardised]. Lower is better.
func NLPD(p bayes.Prediction, y []float64) (Estimate, error) { return one(newNLPD(), p, y) }

func newNLPD() *measure {
	return &measure{name: "NLPD", censored: true, scorer: &rowMean{score: func(r *row, out []float64) {
		for g, l := range r.logDensity() {
			out[g] = -l
		}
	}}}
}

// MSE is the mean squared error of the predictive mean, mean_n (sum_j w_j f_j(x_n) - y_n)^2, for regression, in squared
// units of the target.
func MSE(p bayes.Prediction, y []float64) (Estimate, error) {
	return one(&measure{name: "MSE", tasks: regressionOnly, scorer: &rowMean{score: squaredError}}, p, y)
}

// RMSE is the root of the mean squared error of the predictive mean, the square root of [MSE], for regression, in the
// target's units. Its sampling error is by the delta method. [ParticleRMSE] is the RMSE of the particles themselves.
func RMSE(p bayes.Prediction, y []float64) (Estimate, error) { return one(newRMSE(), p, y) }

func newRMSE() *measure {
	return &measure{name: "RMSE", tasks: regressionOnly, scorer: &rowMean{score: squaredError, root: true}}
}

func squaredError(r *row, out []float64) {
	for g, m := range r.mean() {
		out[g] = (m - r.y) * (m - r.y)
	}
}

// ParticleRMSE is the weighted mean over particles of each particle's own RMSE, sum_j w_j sqrt(mean_n (f_j(x_n) -
// y_n)^2), for regression, in the target's units. The paper of OHSMC reports it as RMSE. It is never below [RMSE]. Its
// sampling error is not given.
func ParticleRMSE(p bayes.Prediction, y []float64) (Estimate, error) {
	return one(newParticleRMSE(), p, y)
}

func newParticleRMSE() *measure {
	return &measure{name: "particle RMSE", tasks: regressionOnly, scorer: &particleMean{
		width: 1,
		count: func(r *row, i int, sums []float64) {
			f := r.ofParticles()[i]
			sums[0] += (f - r.y) * (f - r.y)
		},
		score: func(sums []float64, rows float64) float64 { return math.Sqrt(sums[0] / rows) },
	}}
}

// ParticleAccuracy is the weighted mean over particles of each particle's own accuracy, the share of rows for which its
// class of largest probability is the true one, for classification. The paper of OHSMC reports it as accuracy. Its
// sampling error is not given.
func ParticleAccuracy(p bayes.Prediction, y []float64) (Estimate, error) {
	return one(&measure{name: "particle accuracy", tasks: classificationOnly, scorer: &particleMean{
		width: 1,
		count: func(r *row, i int, sums []float64) {
			class, _ := r.predictedBy(i)
			sums[0] += indicator(class == int(r.y))
		},
		score: func(sums []float64, rows float64) float64 { return sums[0] / rows },
	}}, p, y)
}

// particleMean is the weighted mean over particles of a score of each, which is made of sums over rows.
type particleMean struct {
	width    int
	count    func(r *row, particle int, sums []float64) // adds a row to a particle's sums, [width]
	score    func(sums []float64, rows float64) float64 // of one particle
	ensemble *ensemble
	sums     []float64 // [A, width]
	rows     float64
}

func (a *particleMean) add(r *row) {
	if a.sums == nil {
		a.ensemble, a.sums = r.ensemble, make([]float64, len(r.alive)*a.width)
	}
	for i := range r.alive {
		a.count(r, i, a.of(i))
	}
	a.rows++
}

func (a *particleMean) of(i int) []float64 { return a.sums[i*a.width : (i+1)*a.width] }

func (a *particleMean) result() ([]float64, float64) {
	e := a.ensemble
	groups := make([]float64, e.groups)
	for g := range groups {
		for i := e.bounds[g]; i < e.bounds[g+1]; i++ {
			groups[g] += e.weights[i] * a.score(a.of(i), a.rows)
		}
	}
	return e.withAndWithout(groups), math.NaN()
}

// Accuracy is the share of rows for which the class of largest averaged probability is the true one, for
// classification.
func Accuracy(p bayes.Prediction, y []float64) (Estimate, error) { return one(newAccuracy(), p, y) }

func newAccuracy() *measure {
	return &measure{name: "accuracy", tasks: classificationOnly, stretched: true,
		scorer: &rowMean{steps: true, score: func(r *row, out []float64) {
			for g := range out {
				class, _ := r.predicted(g)
				out[g] = indicator(class == int(r.y))
			}
		}}}
}

// newBrier is the Brier score in its multi-class sum form (Brier 1950), mean_n sum_c (p_nc - 1{y_n = c})^2, between 0
// and 2, for classification. For two classes it is twice the (p_1 - y)^2 that some programs report.
func newBrier() *measure {
	return &measure{name: "Brier", tasks: classificationOnly, scorer: &rowMean{score: func(r *row, out []float64) {
		clear(out)
		for c, probability := range r.classes() {
			truth := indicator(c == int(r.y))
			for g, v := range probability {
				out[g] += (v - truth) * (v - truth)
			}
		}
	}}}
}

// Coverage is the share of rows whose target lies in the central interval of the given level,
// [bayes.Prediction.Interval], for regression; level lies between 0 and 1. A calibrated prediction has a coverage equal
// to the level.
//
// A censored target counts by the probability that the interval has it, given that it is above y: at least 0, else
// (b - max(a, u)) / (1 - u), of an interval between the levels a and b, where u = P(Y <= y). Its mean is b - a for a
// calibrated prediction, whatever censors: D-calibration (Haider et al. 2020, Effective ways to build and evaluate
// individual survival distributions). What is hardly ever seen says little.
func Coverage(p bayes.Prediction, y []float64, level float64) (Estimate, error) {
	return one(newCoverage(level), p, y)
}

func newCoverage(level float64) *measure {
	// y lies between the quantiles exactly if its distribution function lies between their levels: no quantile is needed.
	from, to := (1-level)/2, 1-(1-level)/2
	m := ofInterval("coverage", level, &rowMean{steps: true, score: func(r *row, out []float64) {
		upTo, below := r.distribution()
		for g, v := range upTo {
			switch {
			case !r.above:
				out[g] = indicator(v >= from && below[g] <= to)
			case v < to:
				out[g] = (to - max(from, v)) / (1 - max(0, v))
			default:
				out[g] = 0
			}
		}
	}})
	m.censored, m.stretched = true, true
	return m
}

// newWidth is the mean width of the central interval of the given level, for regression, in the target's units.
func newWidth(level float64) *measure {
	return ofInterval("width", level, &rowMean{score: func(r *row, out []float64) {
		lower, upper := r.interval(level)
		for g := range out {
			out[g] = upper[g] - lower[g]
		}
	}})
}

// newIntervalScore is the mean interval score (Winkler 1972; Gneiting and Raftery 2007, eq. 43) of the central interval
// [l, u] of the level 1-alpha, for regression, in the target's units: (u - l) + 2/alpha (l - y) 1{y < l} + 2/alpha (y -
// u) 1{y > u}. Lower is better; it rewards narrow intervals and penalises targets outside.
func newIntervalScore(level float64) *measure {
	return ofInterval("interval score", level, &rowMean{score: func(r *row, out []float64) {
		lower, upper := r.interval(level)
		for g := range out {
			out[g] = upper[g] - lower[g] + 2/(1-level)*(max(lower[g]-r.y, 0)+max(r.y-upper[g], 0))
		}
	}})
}

func ofInterval(name string, level float64, s scorer) *measure {
	m := &measure{name: name + " " + strconv.FormatFloat(100*level, 'g', 6, 64) + "%", tasks: regressionOnly, scorer: s}
	if !(level > 0 && level < 1) {
		m.err = fmt.Errorf("metric: the level of %s is %v: it must lie between 0 and 1", name, level)
	}
	return m
}

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

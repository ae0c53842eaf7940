package metric

import (
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
)

// measure computes one score from predictions that come in batches of rows, all of the same particles with the same
// weights. Rows cut into other batches give the same result, bit for bit.
type measure struct {
	name      string
	tasks     tasks
	err       error // of the settings
	censored  bool  // is known where targets are censored
	stretched bool  // the replicates are of stretched quantities (see the package comment)
	scorer    scorer
	rows      int
}

// scorer accumulates a score, a row at a time, from its zero value on.
type scorer interface {
	add(r *row)
	// result is the score by all particles, followed by the jackknife's replicates, [1+G], and the sampling standard
	// error.
	result() (values []float64, sampling float64)
}

type tasks int

const (
	anyTask        tasks = iota
	regressionOnly       // of one target
	classificationOnly
)

// estimate is the score of the rows so far.
func (m *measure) estimate() (Estimate, error) {
	if m.err != nil {
		return Estimate{}, m.err
	}
	if m.rows == 0 {
		return Estimate{}, fmt.Errorf("metric: %s of no rows", m.name)
	}
	values, sampling := m.scorer.result()
	return Estimate{values[0], jackknife(values[1:], m.stretched), sampling}, nil
}

// accepts is an error if the settings are wrong or the metric is not for such predictions.
func (m *measure) accepts(p bayes.Prediction) error {
	if m.err != nil {
		return m.err
	}
	if p.Censored != nil && !m.censored {
		return fmt.Errorf("metric: %s is not known where targets are censored: take NLPD or Coverage", m.name)
	}
	switch regression := p.Task() == dataset.Regression; {
	case m.tasks == regressionOnly && !regression:
		return fmt.Errorf("metric: %s is for regression, but the prediction's Task is %v", m.name, p.Task())
	case m.tasks == classificationOnly && regression:
		return fmt.Errorf("metric: %s is for classification, but the prediction's Task is %v", m.name, p.Task())
	case m.tasks == regressionOnly && p.Columns() > 1:
		return fmt.Errorf("metric: %s is for one target, but the prediction has %d: take one by Prediction.Of",
			m.name, p.Columns())
	}
	return nil
}

// add gives a batch to several metrics, which share what they compute for each row.
func add(p bayes.Prediction, y []float64, metrics []*measure) error {
	if err := p.ValidateTarget(y); err != nil {
		return fmt.Errorf("metric: %w", err)
	}
	for _, m := range metrics {
		if err := m.accepts(p); err != nil {
			return err
		}
	}
	shared := newEnsemble(p)
	for _, m := range metrics {
		m.rows += p.Rows
	}
	for n := range p.Rows {
		r := newRow(shared, p, n, y[n*shared.targets:(n+1)*shared.targets])
		for _, m := range metrics {
			m.scorer.add(r)
		}
	}
	return nil
}

// table is the metrics' estimates, in the given order.
func table(metrics []*measure) (Table, error) {
	table := make(Table, len(metrics))
	for i, m := range metrics {
		estimate, err := m.estimate()
		if err != nil {
			return nil, err
		}
		table[i] = Score{m.name, estimate}
	}
	return table, nil
}

// one is the score of a single batch.
func one(m *measure, p bayes.Prediction, y []float64) (Estimate, error) {
	if err := add(p, y, []*measure{m}); err != nil {
		return Estimate{}, err
	}
	return m.estimate()
}

// rowMean is a mean over rows of a score of each, or the square root of one.
type rowMean struct {
	score  func(r *row, out []float64) // out is [1+G]
	root   bool
	steps  bool // each row's score is 0 or 1: the mean is a share of rows
	out    []float64
	sums   []float64 // [1+G]
	n      float64
	mean   float64 // of the rows' own scores, and the sum of squares about it (Welford 1962)
	square float64
}

func (a *rowMean) add(r *row) {
	if a.sums == nil {
		a.out, a.sums = make([]float64, 1+r.replicates), make([]float64, 1+r.replicates)
	}
	a.score(r, a.out)
	for i, v := range a.out {
		a.sums[i] += v
	}
	a.n++
	delta := a.out[0] - a.mean
	a.mean += delta / a.n
	a.square += delta * (a.out[0] - a.mean)
}

func (a *rowMean) result() ([]float64, float64) {
	values := make([]float64, len(a.sums))
	for i, v := range a.sums {
		values[i] = v / a.n
		if a.root {
			values[i] = math.Sqrt(values[i])
		}
	}
	if a.n < 2 {
		return values, math.NaN()
	}
	if a.steps {
		return values, shareStdErr(a.sums[0], a.n)
	}
	sampling := math.Sqrt(a.square / (a.n - 1) / a.n)
	if a.root {
		sampling /= 2 * values[0] // d sqrt(x) = dx / (2 sqrt(x))
	}
	return values, sampling
}

// shareStdErr is the standard error of a share, k of n rows: the standard deviation of Beta(k + 1/2, n - k + 1/2), the
// posterior of the probability under Jeffreys' prior (Brown, Cai and DasGupta 2001, Interval estimation for a binomial
// proportion, Statistical Science 16(2)),
//
//	SE^2 = (k + 1/2) (n - k + 1/2) / ((n + 1)^2 (n + 2)).
//
// It approaches the sample's p (1 - p) / n as n grows, and is not 0 at p = 0 and 1: even if all of n rows count, the
// next one need not.
func shareStdErr(k, n float64) float64 {
	return math.Sqrt((k+0.5)*(n-k+0.5)/(n+2)) / (n + 1)
}

package check

import (
	"cmp"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// SequentialRun is what one run of a sequential sampler gives.
type SequentialRun struct {
	Phi         []float64 // [J, D] flat
	LogWeights  []float64 // [J], not necessarily normalised; nil: equal weights
	LogEvidence float64
	// StdErr is the standard error that the run states for LogEvidence; 0: it states none.
	StdErr float64
}

// SequentialOptions say how a sequential sampler is tested. The zero value works.
type SequentialOptions struct {
	Problem *Linear // what the sampler solves; default Line()
	Runs    int     // runs at least, each with a seed of its own; default 100
	// StdDev is what the standard deviation of LogEvidence should be at most; default 0: anything goes. A fault that
	// wastes particles, and biases nothing, is seen in this alone: such as weights that stay with their places when
	// particles are resampled.
	StdDev float64

	// What only tests of this package change.

	// factor is the error of the evidence that must be found, 1.4: a mean of Z^/Z of factor, or of its inverse, fails
	// with a probability of 95 %. If the deviation of the first Runs shows that they are too few for that (Stein 1945),
	// more are made, up to ten times Runs; if these are too few as well the test fails, since so imprecise a sampler
	// says nothing.
	factor     float64
	falseAlarm float64 // see the package's comment
	seed       uint64  // of the first run; each other has the next number
}

// Sequential tests a sampler, and fails t, with a table of what failed, unless it passes. What the sampler gives for a
// seed is a run on the problem's posterior and evidence.
func Sequential(t testing.TB, sample func(seed uint64) (SequentialRun, error), o SequentialOptions) {
	t.Helper()
	report, err := runSequential(sample, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Failures()) > 0 {
		t.Error(report.Summary())
	}
}

// runSequential tests a sampler. The error is about options, or the sampler's own; what the tests find is in the
// report.
//
// With Z the evidence, Z^ a run's estimate and f^ its weighted mean of f, Z^ and Z^ f^ have means Z and Z E[f] exactly,
// for every number of particles (Del Moral 2004, "Feynman-Kac Formulae", theorem 7.4.2). So the mean over runs of Z^/Z
// is compared with 1, and that of (Z^/Z) (f^ - E[f]) with 0, where f are the coordinates and their products: the
// posterior's mean and covariance. This detects wrong weights, ancestors, increments of the evidence and moves. It also
// detects standard errors that do not cover. With 200 particles on Line a call makes 105 runs: five
// more than SequentialOptions.Runs, until an error of the evidence by a factor of 1.4 would be found.
func runSequential(sample func(seed uint64) (SequentialRun, error), o SequentialOptions) (Report, error) {
	if o.Problem == nil {
		l := Line()
		o.Problem = &l
	}
	o.Runs = cmp.Or(o.Runs, 100)
	o.factor = cmp.Or(o.factor, 1.4)
	o.falseAlarm = cmp.Or(o.falseAlarm, 1e-3)
	o.seed = cmp.Or(o.seed, 1)
	if o.Runs < 30 {
		return Report{}, fmt.Errorf("check: SequentialOptions.Runs is %d: it must be at least 30", o.Runs)
	}
	if !(o.StdDev >= 0) {
		return Report{}, fmt.Errorf("check: SequentialOptions.StdDev is %v: it must be positive (0: not tested)", o.StdDev)
	}
	if sample == nil {
		return Report{}, fmt.Errorf("check: there is no sampler: give a function from seeds to runs")
	}
	if err := o.Problem.check(); err != nil {
		return Report{}, err
	}
	e := newEstimates(*o.Problem)
	for n := range o.Runs {
		if err := e.run(sample, o.seed+uint64(n)); err != nil {
			return Report{}, err
		}
	}
	// Holm's rule asks of the first test of m a p-value of falseAlarm/m; others are easier to fail.
	quantile := distuv.UnitNormal.Quantile
	needed := enoughRuns(e.ratios, o.factor, quantile(1-o.falseAlarm/float64(e.tests())/2)+quantile(.95))
	for n := o.Runs; float64(n) < min(needed, 10*float64(o.Runs)); n++ {
		if err := e.run(sample, o.seed+uint64(n)); err != nil {
			return Report{}, err
		}
	}
	report := e.report(o)
	if needed > 10*float64(o.Runs) {
		report.exact("evidence", fmt.Sprintf("too imprecise for a factor of %g to be found by %d runs, it takes %.3g: "+
			"use more particles", o.factor, 10*o.Runs, needed), 1)
	}
	report.judge()
	return report, nil
}

// enoughRuns is the number of runs after which a mean of Z^/Z of factor, or of its inverse, lies so many standard
// errors from 1.
func enoughRuns(ratios []float64, factor, standardErrors float64) float64 {
	mean, sd := stat.MeanStdDev(ratios, nil)
	needed := standardErrors * (sd / mean) / (1 - 1/factor)
	if math.IsNaN(needed) { // no run has any evidence
		return 0
	}
	return math.Ceil(needed * needed)
}

// estimates holds the results of a sampler's runs, and the exact values.
type estimates struct {
	mean        []float64
	covariance  *mat.SymDense
	logEvidence float64

	logs, ratios, errors []float64 // log Z^; Z^/Z; (log Z^ - log Z) / StdErr
	unstated             int       // runs without StdErr
	// Z^/Z times the error of the posterior mean, by coordinate, and of the covariance, [D, D] flat, the lower
	// triangle, in standard deviations.
	firsts, seconds [][]float64
}

func newEstimates(l Linear) *estimates {
	e := &estimates{}
	e.mean, e.covariance, e.logEvidence = l.Posterior()
	d := len(e.mean)
	e.firsts, e.seconds = make([][]float64, d), make([][]float64, d*d)
	return e
}

// run makes one run more.
func (e *estimates) run(sample func(seed uint64) (SequentialRun, error), seed uint64) error {
	d := len(e.mean)
	r, err := sample(seed)
	if err != nil {
		return fmt.Errorf("check: the run with seed %d: %w", seed, err)
	}
	w, err := r.weights(d)
	if err != nil {
		return fmt.Errorf("check: the run with seed %d: %w", seed, err)
	}
	ratio := math.Exp(r.LogEvidence - e.logEvidence)
	e.logs, e.ratios = append(e.logs, r.LogEvidence), append(e.ratios, ratio)
	if r.StdErr > 0 {
		e.errors = append(e.errors, (r.LogEvidence-e.logEvidence)/r.StdErr)
	} else {
		e.unstated++
	}
	m, c := moments(r.Phi, w, e.mean)
	for i := range d {
		e.firsts[i] = append(e.firsts[i], ratio*m[i]/math.Sqrt(e.covariance.At(i, i)))
		for k := range i + 1 {
			scale := math.Sqrt(e.covariance.At(i, i) * e.covariance.At(k, k))
			e.seconds[i*d+k] = append(e.seconds[i*d+k], ratio*(c[i*d+k]-e.covariance.At(i, k))/scale)
		}
	}
	return nil
}

// tests returns the largest number of random tests in a report.
func (e *estimates) tests() int {
	d := len(e.mean)
	return 4 + d + d*(d+1)/2
}

// report compares what the runs gave with what is exact.
func (e *estimates) report(o SequentialOptions) Report {
	report := Report{subject: "sequential sampler", falseAlarm: o.falseAlarm}
	d, runs := len(e.mean), len(e.logs)
	s, p := zTest(e.ratios, 1)
	report.add("evidence", "unbiased: mean of Z^/Z", s, p)
	if o.StdDev > 0 {
		ratio := stat.Variance(e.logs, nil) / (o.StdDev * o.StdDev)
		n := float64(runs - 1)
		report.add(
			"evidence", "variance of log Z^ over the greatest allowed", ratio, distuv.ChiSquared{K: n}.Survival(n*ratio),
		)
	}
	if e.unstated < runs {
		report.exact("evidence", "runs that state no standard error, while others do", e.unstated)
		coverage(&report, e.errors)
	}
	for i := range d {
		s, p := zTest(e.firsts[i], 0)
		report.add("posterior", fmt.Sprintf("mean of coordinate %d", i+1), s, p)
		for k := range i + 1 {
			s, p := zTest(e.seconds[i*d+k], 0)
			report.add("posterior", fmt.Sprintf("covariance of coordinates %d and %d", k+1, i+1), s, p)
		}
	}
	return report
}

// coverage judges the errors of the log evidence in units of the stated standard error. That error is an estimate
// itself, and good only as the number of particles grows: it fails if the 95 % interval covers less than 90 % surely,
// or if it is surely more than twice as wide as the errors are.
func coverage(report *Report, errors []float64) {
	n := len(errors)
	inside := 0
	for _, e := range errors {
		if math.Abs(e) <= 1.959964 {
			inside++
		}
	}
	share := float64(inside) / float64(n)
	report.add(
		"evidence", "standard error: 95 % intervals that cover, too few", share,
		distuv.Binomial{N: float64(n), P: .9}.CDF(float64(inside)),
	)
	if n > 1 {
		variance := stat.Variance(errors, nil)
		report.add("evidence", "standard error: variance of errors in its units, too small", variance,
			distuv.ChiSquared{K: float64(n - 1)}.CDF(float64(n-1)*variance/.25))
	}
}

// weights returns the normalised weights, [J].
func (r SequentialRun) weights(d int) ([]float64, error) {
	if len(r.Phi) == 0 || len(r.Phi)%d != 0 {
		return nil, fmt.Errorf("there are %d numbers in Phi, which is not a multiple of %d coordinates", len(r.Phi), d)
	}
	j := len(r.Phi) / d
	if r.LogWeights != nil && len(r.LogWeights) != j {
		return nil, fmt.Errorf("there are %d LogWeights for %d particles", len(r.LogWeights), j)
	}
	if math.IsNaN(r.LogEvidence) || math.IsInf(r.LogEvidence, 1) || !(r.StdErr >= 0) {
		return nil, fmt.Errorf("the log evidence is %v, with standard error %v", r.LogEvidence, r.StdErr)
	}
	w := make([]float64, j)
	if r.LogWeights == nil {
		for i := range w {
			w[i] = 1 / float64(j)
		}
		return w, nil
	}
	top := math.Inf(-1)
	for _, l := range r.LogWeights {
		top = max(top, l)
	}
	if math.IsNaN(top) || math.IsInf(top, 0) {
		return nil, fmt.Errorf("the largest log-weight is %v", top)
	}
	sum := 0.0
	for i, l := range r.LogWeights {
		w[i] = math.Exp(l - top)
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w, nil
}

// moments returns the weighted means of phi - center, [D], and of the products of its coordinates, [D, D] flat, the
// lower triangle.
func moments(phi, weights, center []float64) (first, second []float64) {
	d := len(center)
	first, second = make([]float64, d), make([]float64, d*d)
	for j, w := range weights {
		for i := range d {
			x := phi[j*d+i] - center[i]
			first[i] += w * x
			for k := range i + 1 {
				second[i*d+k] += w * x * (phi[j*d+k] - center[k])
			}
		}
	}
	return first, second
}

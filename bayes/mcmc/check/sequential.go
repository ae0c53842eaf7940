package check

import (
	"cmp"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
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
	Runs    int     // with seeds from 1 on; default 100
	// StdDev is what the standard deviation of LogEvidence should be at most; default 0: anything goes. A fault that
	// wastes particles, and biases nothing, is seen in this alone: such as weights that stay with their places when
	// particles are resampled.
	StdDev float64
}

// Sequential tests a sampler, and fails t, with a table of what failed, unless it passes. What the sampler gives for a
// seed is a run on the problem's posterior and evidence.
func Sequential(t testing.TB, sample func(seed uint64) (SequentialRun, error), o SequentialOptions) {
	t.Helper()
	report, err := runSequential(sample, o)
	if err != nil {
		t.Fatal(err)
	}
	if report.Failures() > 0 {
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
// detects standard errors that do not cover.
func runSequential(sample func(seed uint64) (SequentialRun, error), o SequentialOptions) (Report, error) {
	if o.Problem == nil {
		l := Line()
		o.Problem = &l
	}
	o.Runs = cmp.Or(o.Runs, 100)
	if o.Runs < 30 {
		return Report{}, fmt.Errorf("check: SequentialOptions.Runs is %d: it must be at least 30", o.Runs)
	}
	mean, covariance, logEvidence := o.Problem.Posterior()
	var logs, ratios []float64 // log Z^; Z^/Z
	var errors []float64       // (log Z^ - log Z) / StdErr, of the runs that state it
	var moments []moment
	values := map[string][]float64{} // Z^/Z times the errors of each moment
	for seed := uint64(1); seed <= uint64(o.Runs); seed++ {
		r, err := sample(seed)
		if err == nil {
			err = r.check(len(mean))
		}
		if err != nil {
			return Report{}, fmt.Errorf("check: the run with seed %d: %w", seed, err)
		}
		ratio := math.Exp(r.LogEvidence - logEvidence)
		logs, ratios = append(logs, r.LogEvidence), append(ratios, ratio)
		if r.StdErr > 0 {
			errors = append(errors, (r.LogEvidence-logEvidence)/r.StdErr)
		}
		moments = r.moments(mean, covariance)
		for _, m := range moments {
			values[m.name] = append(values[m.name], ratio*m.off)
		}
	}

	report := Report{subject: "sequential sampler"}
	s, p := zTest(ratios, 1)
	report.add("evidence", "unbiased: mean of Z^/Z", s, p)
	if o.StdDev > 0 {
		ratio := stat.Variance(logs, nil) / (o.StdDev * o.StdDev)
		n := float64(o.Runs - 1)
		report.add(
			"evidence", "variance of log Z^ over the greatest allowed", ratio, distuv.ChiSquared{K: n}.Survival(n*ratio),
		)
	}
	if len(errors) > 0 {
		report.exact("evidence", "runs that state no standard error, while others do", o.Runs-len(errors))
		coverage(&report, errors)
	}
	for _, m := range moments {
		s, p := zTest(values[m.name], 0)
		report.add("posterior", m.name, s, p)
	}
	report.judge()
	return report, nil
}

// coverage judges the errors of the log evidence in units of the stated standard error. That error is an estimate
// itself, and good only as the number of particles grows: it fails if the 95 % interval covers less than 90 % surely,
// or if it is surely more than twice as wide as the errors are.
func coverage(report *Report, errors []float64) {
	n := float64(len(errors))
	inside := 0.
	for _, e := range errors {
		if math.Abs(e) <= 1.959964 {
			inside++
		}
	}
	report.add("evidence", "standard error: 95 % intervals that cover, too few", inside/n,
		distuv.Binomial{N: n, P: .9}.CDF(inside))
	variance := stat.Variance(errors, nil)
	report.add("evidence", "standard error: variance of errors in its units, too small", variance,
		distuv.ChiSquared{K: n - 1}.CDF((n-1)*variance/.25))
}

// check returns an error that names what is wrong, for particles of d coordinates.
func (r SequentialRun) check(d int) error {
	if len(r.Phi) == 0 || len(r.Phi)%d != 0 {
		return fmt.Errorf("there are %d numbers in Phi, which is not a multiple of %d coordinates", len(r.Phi), d)
	}
	if j := len(r.Phi) / d; r.LogWeights != nil && len(r.LogWeights) != j {
		return fmt.Errorf("there are %d LogWeights for %d particles", len(r.LogWeights), j)
	}
	if math.IsNaN(r.LogEvidence) || math.IsInf(r.LogEvidence, 1) || !(r.StdErr >= 0) {
		return fmt.Errorf("the log evidence is %v, with standard error %v", r.LogEvidence, r.StdErr)
	}
	return nil
}

// moment is an estimated moment of the posterior less the exact one, in standard deviations of the posterior.
type moment struct {
	name string
	off  float64
}

// moments are the means of all coordinates, and the means of the products of their deviations from the exact mean.
func (r SequentialRun) moments(mean []float64, covariance *mat.SymDense) (all []moment) {
	d := len(mean)
	weights := make([]float64, len(r.Phi)/d)
	copy(weights, r.LogWeights)
	floats.AddConst(-floats.LogSumExp(weights), weights)
	sd := func(i int) float64 { return math.Sqrt(covariance.At(i, i)) }
	for i := range mean {
		first, products := 0., make([]float64, i+1)
		for j, w := range weights {
			x := r.Phi[j*d : (j+1)*d]
			first += math.Exp(w) * (x[i] - mean[i])
			for k := range products {
				products[k] += math.Exp(w) * (x[i] - mean[i]) * (x[k] - mean[k])
			}
		}
		all = append(all, moment{fmt.Sprintf("mean of coordinate %d", i+1), first / sd(i)})
		for k, product := range products {
			all = append(all, moment{fmt.Sprintf("covariance of coordinates %d and %d", k+1, i+1),
				(product - covariance.At(i, k)) / (sd(i) * sd(k))})
		}
	}
	return all
}

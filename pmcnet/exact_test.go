package pmcnet_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/run"
	"gobnn/pmcnet"
)

// conjugate is a way to run on conjugate regressions, and what it must reach.
type conjugate struct {
	name      string
	d, seeds  int
	a         pmcnet.PMC
	rms, logZ float64 // at most, root mean squares over the seeds: of the mean, in posterior standard deviations; of log Z
	ess, kHat float64 // of each seed: at least; at most
	eachLogZ  float64 // of each seed: at most; 0: five stated errors alone
}

// Conjugate regressions in 5 dimensions, with what an independent implementation reaches; TestConjugateLong has the
// others.
func TestConjugate(t *testing.T) {
	engine := computetest.Engines(t)[0]
	if testing.Short() && !engine.IsXLA() {
		t.Skip("takes many seconds on the Go backend")
	}
	testConjugate(t, engine, []conjugate{
		{
			name: "5 dimensions", d: 5, seeds: 3, a: pmcnet.PMC{Resampling: pmcnet.GlocalEvery(2)},
			rms: .02, logZ: .015, eachLogZ: .015, ess: 4500, kHat: .4,
		},
	})
}

func testConjugate(t *testing.T, engine *compute.Engine, cases []conjugate) {
	dtype := compute.Float64 // on the Go backend, so that both types run
	if engine.IsXLA() {
		dtype = compute.Float32
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := fittest.Regression(c.d, 100, 1)
			_, _, want := l.Posterior()
			posed := fittest.Density(l)
			square, squareZ := 0., 0.
			for seed := range uint64(c.seeds) {
				r, d := fittest.Sample[*pmcnet.Details](t, posed, c.a, run.Settings{Seed: seed, Engine: engine, DType: dtype})
				evidence := r.Draws.Evidence
				off := evidence.Value - want
				e := fittest.OffMean(t, r.Draws, l)
				square += e * e / float64(c.seeds)
				squareZ += off * off / float64(c.seeds)
				t.Logf("rms %.3f, log Z off by %.4f +- %.4f, ESS %.0f, k-hat %.2f, %v", e, off, evidence.StdErr, d.ESS,
					d.KHat, r.Elapsed)
				most := 5 * evidence.StdErr
				if c.eachLogZ > 0 {
					most = min(most, c.eachLogZ)
				}
				if !(d.ESS >= c.ess && d.KHat <= c.kHat && math.Abs(off) <= most) {
					t.Errorf("seed %d: log Z is off by %.4f +- %.4f, ESS %.0f, k-hat %.2f", seed, off, evidence.StdErr, d.ESS,
						d.KHat)
				}
			}
			if !(math.Sqrt(square) <= c.rms && math.Sqrt(squareZ) <= c.logZ) {
				t.Errorf("the mean is off by %.3f posterior standard deviations, log Z by %.4f (rms)", math.Sqrt(square),
					math.Sqrt(squareZ))
			}
		})
	}
}

// With too few draws the weights degenerate: this must be seen and said, and no number is called evidence.
func TestCollapse(t *testing.T) {
	l := fittest.Regression(20, 100, 1)
	_, _, want := l.Posterior()
	a := pmcnet.PMC{Proposals: 20, Iterations: 8} // TestCollapseLong has the paper's numbers
	r, d := fittest.Sample[*pmcnet.Details](t, fittest.Density(l), a, goSettings(t))
	last := d.Trace[len(d.Trace)-1]
	if d.ESS > 50 || !(d.KHat > 1) || last.LogEvidence > want-5 || r.Draws.Evidence.Known() || r.Status != run.Completed {
		t.Errorf("ESS %.1f, k-hat %.2f, log Z %.1f too low, evidence %+v, %s", d.ESS, d.KHat, want-last.LogEvidence,
			r.Draws.Evidence, r.Status)
	}
	fittest.Says(t, "warnings", strings.Join(r.Warnings, ";"), "k-hat", "no evidence")
}

// The evidence is unbiased, its standard error is that of the runs, and the weighted draws have the exact means and
// covariances: the harness of sequential samplers, by the evidence of the last iteration, which is unbiased given the
// proposals.
func TestExact(t *testing.T) {
	for _, c := range []struct {
		name string
		a    pmcnet.PMC
	}{
		{"full", pmcnet.PMC{}},
		{"covariance-free, global", pmcnet.PMC{
			Covariance: pmcnet.FixedCovariance, Resampling: pmcnet.GlocalEvery(1), StdDev: .4}},
		{"diagonal, glocal, gradient-free", pmcnet.PMC{Covariance: pmcnet.DiagonalCovariance, Ascent: pmcnet.NoAscent,
			Resampling: pmcnet.GlocalEvery(2), StdDev: .6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			line := check.Line()
			a := c.a
			a.Proposals, a.Draws, a.Iterations = 8, 50, 4
			if a.StdDev == 0 {
				a.StdDev = .6
			}
			posed := fittest.Density(line)
			settings := run.Settings{Engine: computetest.Go(t), DType: compute.Float64}
			check.Sequential(t, func(seed uint64) (check.SequentialRun, error) {
				settings.Seed = seed
				r, d := fittest.Sample[*pmcnet.Details](t, posed, a, settings)
				phi, err := compute.Float64s(r.Draws.Phi)
				last := d.Trace[len(d.Trace)-1]
				return check.SequentialRun{Phi: phi, LogWeights: r.Draws.LogWeights, LogEvidence: last.LogEvidence,
					StdErr: last.LogEvidenceStdErr}, err
			}, check.SequentialOptions{Problem: &line, Runs: 60, StdDev: .2})
		})
	}
}

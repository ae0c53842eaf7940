package pmcnet_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/pmcnet"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
)

// regression is a conjugate one of D coordinates and N rows, with noise of standard deviation 1 and prior N(0, 1).
func regression(d, n int, seed uint64) check.Linear {
	r := rand.New(rand.NewPCG(seed, 3))
	l := check.Linear{NoiseStdDev: 1}
	w := make([]float64, d)
	for i := range w {
		w[i] = r.NormFloat64()
	}
	for range n {
		x, y := make([]float64, d), r.NormFloat64()
		for i := range x {
			x[i] = r.NormFloat64()
			y += w[i] * x[i]
		}
		l.X, l.Y = append(l.X, x), append(l.Y, y)
	}
	return l
}

// problem is a regression's posterior.
func problem(l check.Linear) density.Problem {
	d := len(l.X[0])
	sd := l.PriorStdDev
	for len(sd) < d {
		sd = append(sd, 1)
	}
	return density.Problem{
		Name: "regression", Dim: d,
		Data: map[string]*tensors.Tensor{"x": tensors.FromValue(l.X), "y": tensors.FromValue(l.Y)},
		Initial: func(rng random.Stream, dtype compute.DType, particles int) *graph.Node {
			return rng.Normal(dtype, particles, d)
		},
		Target: func(data compute.Nodes, _ []*graph.Node) density.Target {
			return smc.Posterior{
				Prior: func(phi *graph.Node) *graph.Node {
					square := graph.ReduceSum(graph.Square(phi), 1)
					return graph.AddScalar(graph.MulScalar(square, -.5), -float64(d)*math.Log(2*math.Pi)/2)
				},
				Likelihood: func(phi *graph.Node) *graph.Node {
					x := graph.ConvertDType(data["x"], phi.DType())
					y := graph.ConvertDType(data["y"], phi.DType())
					rest := graph.Sub(graph.Einsum("jd,nd->jn", phi, x), graph.ExpandAxes(y, 0))
					square := graph.ReduceSum(graph.Square(rest), 1)
					v, n := l.NoiseStdDev*l.NoiseStdDev, float64(len(l.Y))
					return graph.AddScalar(graph.MulScalar(square, -.5/v), -n*math.Log(2*math.Pi*v)/2)
				},
			}
		},
	}.Keyed("regression", d, l.NoiseStdDev, len(l.Y))
}

// rms is the root mean square error of a result's mean, in posterior standard deviations.
func rms(t *testing.T, r *found, l check.Linear) float64 {
	t.Helper()
	mean, covariance, _ := l.Posterior()
	phi, err := compute.Float64s(r.Phi)
	if err != nil {
		t.Fatal(err)
	}
	d, sum := len(mean), 0.
	column, weights := make([]float64, len(phi)/d), r.LogWeights.Weights()
	for i := range d {
		for j := range column {
			column[j] = phi[j*d+i]
		}
		e := (stat.Mean(column, weights) - mean[i]) / math.Sqrt(covariance.At(i, i))
		sum += e * e / float64(d)
	}
	return math.Sqrt(sum)
}

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
			l := regression(c.d, 100, 1)
			_, _, want := l.Posterior()
			posed := problem(l)
			square, squareZ := 0., 0.
			for seed := range uint64(c.seeds) {
				r, err := sampled(t.Context(), posed, c.a, run.Settings{Seed: seed, Engine: engine, DType: dtype})
				if err != nil {
					t.Fatal(err)
				}
				off := r.Evidence.Value - want
				e := rms(t, r, l)
				square += e * e / float64(c.seeds)
				squareZ += off * off / float64(c.seeds)
				t.Logf("rms %.3f, log Z off by %.4f +- %.4f, ESS %.0f, k-hat %.2f, %v", e, off, r.Evidence.StdErr, r.ESS,
					r.KHat, r.Elapsed)
				most := 5 * r.Evidence.StdErr
				if c.eachLogZ > 0 {
					most = min(most, c.eachLogZ)
				}
				if !(r.ESS >= c.ess && r.KHat <= c.kHat && math.Abs(off) <= most) {
					t.Errorf("seed %d: log Z is off by %.4f +- %.4f, ESS %.0f, k-hat %.2f", seed, off, r.Evidence.StdErr, r.ESS,
						r.KHat)
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
	l := regression(20, 100, 1)
	_, _, want := l.Posterior()
	a := pmcnet.PMC{Proposals: 20, Iterations: 8} // TestCollapseLong has the paper's numbers
	r, err := sampled(t.Context(), problem(l), a, goSettings(t))
	if err != nil {
		t.Fatal(err)
	}
	last := r.Trace[len(r.Trace)-1]
	if r.ESS > 50 || !(r.KHat > 1) || last.LogEvidence > want-5 || r.Evidence.Known() || r.Status != run.Completed {
		t.Errorf("ESS %.1f, k-hat %.2f, log Z %.1f too low, evidence %+v, %s", r.ESS, r.KHat, want-last.LogEvidence,
			r.Evidence, r.Status)
	}
	if text := strings.Join(r.Warnings, ";"); !strings.Contains(text, "k-hat") || !strings.Contains(text, "no evidence") {
		t.Errorf("warnings: %q", r.Warnings)
	}
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
			posed := problem(line)
			settings := run.Settings{Engine: computetest.Go(t), DType: compute.Float64}
			check.Sequential(t, func(seed uint64) (check.SequentialRun, error) {
				settings.Seed = seed
				r, err := sampled(t.Context(), posed, a, settings)
				if err != nil {
					return check.SequentialRun{}, err
				}
				phi, err := compute.Float64s(r.Phi)
				if err != nil {
					return check.SequentialRun{}, err
				}
				out := check.SequentialRun{Phi: phi, LogWeights: r.Draws.LogWeights}
				last := r.Trace[len(r.Trace)-1]
				out.LogEvidence, out.StdErr = last.LogEvidence, last.LogEvidenceStdErr
				return out, nil
			}, check.SequentialOptions{Problem: &line, Runs: 60, StdDev: .2})
		})
	}
}

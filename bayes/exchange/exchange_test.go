package exchange_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/exchange"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
)

// Replica exchange gives the exact posterior and evidence, and the standard error that it states: one call of the
// harness, as for Sample. The mean of exp(log Z) is too high by half of its variance, some hundredths, which the
// harness does not see.
func TestIsExact(t *testing.T) {
	if testing.Short() {
		t.Skip("sixty runs take long without a compiler")
	}
	exchangeIsExact(t, computetest.Engines(t)[0], mcmc.HMC{Steps: 3}, 20, .15)
}

func exchangeIsExact(t *testing.T, engine *compute.Engine, kernel mcmc.Kernel, warmUp int, most float64) {
	line := check.Line()
	exchanger := sampler{Problem: linear(line), Kernel: kernel}
	s := settings{
		Ladder: []float64{.004, .03, .15, .45, 1}, Sets: 16, WarmUp: warmUp, Sweeps: 2 * warmUp, Engine: engine,
	}
	var evidences, variances []float64
	check.Sequential(t, func(seed uint64) (check.SequentialRun, error) {
		s.Seed = seed
		result, err := exchanger.Sample(t.Context(), s)
		if err != nil {
			return check.SequentialRun{}, err
		}
		evidences = append(evidences, result.LogEvidence)
		variances = append(variances, result.LogEvidenceStdErr*result.LogEvidenceStdErr)
		phi, err := compute.Float64s(result.Phi)
		return check.SequentialRun{Phi: phi, LogEvidence: result.LogEvidence}, err
	}, check.SequentialOptions{Problem: &line, Runs: 60, StdDev: most})
	deviation, stated := stat.StdDev(evidences, nil), math.Sqrt(stat.Mean(variances, nil))
	t.Logf("standard deviation of the log evidence %.3f, stated %.3f", deviation, stated)
	if ratio := deviation / stated; !(ratio > .7 && ratio < 1.4) { // 60 runs tell it to 9 %
		t.Errorf("the log evidence has a standard deviation of %.3f, but runs state %.3f", deviation, stated)
	}
}

// twoModes are Gaussian modes of two widths, at -place and place in each coordinate and of weights .2 and .8, as the
// likelihood of a prior N(0, 1).
type twoModes struct {
	dim                  int
	place, first, second float64
}

func (m twoModes) problem() density.Problem {
	mode := func(phi *graph.Node, at, width, weight float64) *graph.Node {
		square := graph.ReduceSum(graph.Square(graph.AddScalar(phi, -at)), 1)
		return graph.AddScalar(graph.MulScalar(square, -.5/(width*width)), math.Log(weight)-float64(m.dim)*math.Log(width))
	}
	return density.Problem{Name: "two modes", Dim: m.dim, Initial: drawNormal(m.dim),
		Target: func(compute.Nodes, []*graph.Node) density.Target {
			return smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
				a, b := mode(phi, -m.place, m.first, .2), mode(phi, m.place, m.second, .8)
				top := graph.StopGradient(graph.Max(a, b))
				return graph.Add(top, graph.Log(graph.Add(graph.Exp(graph.Sub(a, top)), graph.Exp(graph.Sub(b, top)))))
			}}
		}}
}

// exact are the log evidence and the share of the first mode, by convolution.
func (m twoModes) exact() (logEvidence, share float64) {
	mass := func(width, weight float64) float64 {
		total := 1 + width*width // the marginal variance of each coordinate
		return weight * math.Exp(-float64(m.dim)/2*(math.Log(total)+m.place*m.place/total))
	}
	a, b := mass(m.first, .2), mass(m.second, .8)
	return math.Log(a + b), a / (a + b)
}

// Two modes of different widths that moves never leave, 40 and 13 standard deviations from the middle: exchange gives
// each its share, and the evidence, which are exact by convolution. The share's standard error is measured over sets.
// With one step size for all replicas of a power the narrow mode's share is .001.
func TestFindsModes(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of sweeps take long without a compiler")
	}
	const d, sets = 2, 24
	modes := twoModes{d, 2, .05, .15}
	exact, share := modes.exact()
	result, err := sample(t.Context(), modes.problem(), mcmc.HMC{Steps: 4}, settings{
		Ladder: []float64{.001, .004, .015, .05, .15, .4, 1}, Sets: sets, WarmUp: 100, Sweeps: 300, Thin: 3,
		Seed: 1, Engine: computetest.Go(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	if z := (result.LogEvidence - exact) / result.LogEvidenceStdErr; math.Abs(z) > 4 || result.LogEvidenceStdErr > .1 {
		t.Errorf("log evidence %.3f ± %.3f, exact %.3f", result.LogEvidence, result.LogEvidenceStdErr, exact)
	}
	phi, err := compute.Float64s(result.Phi)
	if err != nil {
		t.Fatal(err)
	}
	if len(phi) != 100*sets*d {
		t.Fatalf("%d numbers of draws, want %d", len(phi), 100*sets*d)
	}
	left := make([]float64, sets)
	for i := 0; i < len(phi); i += d {
		if phi[i] < 0 {
			left[i/d%sets] += 1. / 100
		}
	}
	mean, se := stat.Mean(left, nil), stat.StdDev(left, nil)/math.Sqrt(sets)
	t.Logf("log evidence %.3f ± %.3f, exact %.3f; share %.3f ± %.3f; %d arrivals", result.LogEvidence,
		result.LogEvidenceStdErr, exact, mean, se, result.Arrivals)
	if math.Abs(mean-share) > 4*se || se > .05 {
		t.Errorf("the left mode has a share of %.3f ± %.3f, it is %v", mean, se, share)
	}
}

// A mode that no step size can save, since too few replicas are in it while the power is low, is found by scouts, and
// told: by one of three runs at least, where each does with a probability of some .9, as for the four seeds that were
// looked at. One that the replicas find is not called lost.
func TestLostMode(t *testing.T) {
	lost := func(first float64, seed uint64, sweeps int) bool {
		result, err := sample(t.Context(), twoModes{2, 1.2, first, .06}.problem(), mcmc.HMC{}, settings{
			Ladder: []float64{.001, .008, .045, .3, 1}, Sets: 8, WarmUp: 100, Sweeps: sweeps, Seed: seed,
			Engine: computetest.Go(t),
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(strings.Join(result.Warnings, "; "), "are not to be trusted")
	}
	if !lost(.004, 0, 100) && !lost(.004, 1, 100) && !lost(.004, 2, 100) {
		t.Error("no run warns of a lost mode")
	}
	if lost(.02, 0, 30) {
		t.Error("a mode that is found is called lost")
	}
}

// A run that was cancelled anywhere goes on from its checkpoint to the same bits, and a finished one is read.
func TestResumes(t *testing.T) {
	exchanger := sampler{Problem: linear(check.Line()), Kernel: mcmc.HMC{Steps: 2, Jitter: .5}}
	s := settings{Ladder: []float64{.1, 1}, Sets: 4, WarmUp: 2, Sweeps: 4, Seed: 3, Engine: computetest.Go(t)}
	whole, err := exchanger.Sample(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for stop := 1; ; stop++ {
		s.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
		part, err := exchanger.Sample(&countdown{Context: t.Context(), left: stop}, s)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if part != nil && part.Status == run.Completed {
			if stop < 5 {
				t.Fatalf("it looked at the context %d times only", stop)
			}
			break
		}
		if part != nil && (part.Status != run.Cancelled || !math.IsNaN(part.LogEvidence)) {
			t.Fatalf("cancelled at look %d: %s, log evidence %v", stop, part.Status, part.LogEvidence)
		}
		for range 2 { // the second finds it finished
			again, err := exchanger.Sample(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if again.LogEvidence != whole.LogEvidence || again.LogEvidenceStdErr != whole.LogEvidenceStdErr ||
				again.Arrivals != whole.Arrivals || again.Evaluations != whole.Evaluations || !again.Phi.Equal(whole.Phi) ||
				again.Powers[1] != whole.Powers[1] {
				t.Fatalf("cancelled at look %d, it gives %+v, not %+v", stop, again, whole)
			}
		}
	}
	prior, next := whole.Powers[0], whole.Powers[1]
	if !math.IsNaN(prior.Acceptance) || prior.StepSize != 0 || !(next.Acceptance > 0) {
		t.Errorf("the powers' records are %+v: the prior has no moves", whole.Powers)
	}
	s.Seed++
	if _, err := exchanger.Sample(t.Context(), s); !errors.Is(err, run.ErrOtherRun) {
		t.Errorf("the checkpoint of another seed: %v", err)
	}
}

// Where all exchanges are accepted, since the likelihood is constant, arrivals are those of a plain loop over the swaps
// of one set, times the sets.
func TestArrivals(t *testing.T) {
	const sets, warmUp, sweeps = 5, 7, 60
	problem := density.Problem{Dim: 1, Initial: drawNormal(1), Target: func(compute.Nodes, []*graph.Node) density.Target {
		return smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
			return graph.MulScalar(graph.ReduceSum(phi, 1), 0)
		}}
	}}
	ladder := []float64{.1, .3, .6, 1}
	want, fresh := 0, make([]bool, len(ladder)+1) // whether the replica at each power has come from the prior
	for sweep := range warmUp + sweeps {
		fresh[0] = true
		for t := sweep % 2; t+1 < len(fresh); t += 2 {
			fresh[t], fresh[t+1] = fresh[t+1], fresh[t]
		}
		if last := len(fresh) - 1; fresh[last] {
			fresh[last] = false
			if sweep >= warmUp {
				want += sets
			}
		}
	}
	result, err := sample(t.Context(), problem, mcmc.RandomWalkMetropolis{}, settings{
		Ladder: ladder, Sets: sets, WarmUp: warmUp, Sweeps: sweeps, Engine: computetest.Go(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	if result.Arrivals != want || want == 0 {
		t.Errorf("%d arrivals, want %d", result.Arrivals, want)
	}
}

// A run that goes on after the search for its ladder counts the evaluations of the search too.
func TestResumesWithoutALadder(t *testing.T) {
	exchanger := sampler{Problem: linear(check.Line()), Kernel: mcmc.HMC{Steps: 2}}
	s := settings{Sets: 4, WarmUp: 2, Sweeps: 4, Seed: 3, Engine: computetest.Go(t)}
	whole, err := exchanger.Sample(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	s.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
	s.CheckpointEvery = time.Nanosecond
	part, err := exchanger.Sample(untilFile{t.Context(), s.Checkpoint}, s)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled after the first sweep: %+v, error %v", part, err)
	}
	again, err := exchanger.Sample(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if again.Evaluations != whole.Evaluations || again.LogEvidence != whole.LogEvidence {
		t.Errorf("log evidence %v after %d evaluations, uninterrupted %v after %d", again.LogEvidence, again.Evaluations,
			whole.LogEvidence, whole.Evaluations)
	}
}

// untilFile is a context that ends once a file exists.
type untilFile struct {
	context.Context
	path string
}

func (c untilFile) Err() error {
	if _, err := os.Stat(c.path); err == nil {
		return context.Canceled
	}
	return nil
}

// A run that is cancelled while it looks for its ladder says so.
func TestCancelledWithoutALadder(t *testing.T) {
	for _, looks := range []int{1, 4} {
		result, err := sample(&countdown{Context: t.Context(), left: looks}, linear(check.Line()),
			mcmc.HMC{Steps: 2}, settings{Sets: 4, WarmUp: 2, Sweeps: 4, Engine: computetest.Go(t)})
		if result != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at look %d: %+v, error %v", looks, result, err)
		}
	}
}

// A run that is cancelled in its warm-up has no means, and one that is cancelled later counts the states outside so
// far.
func TestCancelled(t *testing.T) {
	problem := density.Problem{Dim: 1, Initial: drawNormal(1), Target: func(compute.Nodes, []*graph.Node) density.Target {
		return smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
			x := graph.Reshape(phi, phi.Shape().Dim(0))
			return compute.Only(graph.GreaterThan(x, graph.AddScalar(graph.ZerosLike(x), 4.5)), graph.ZerosLike(x))
		}}
	}}
	method := exchange.Replicas{
		Kernel: mcmc.HMC{Steps: 2}, Ladder: []float64{.1, 1}, Sets: 8, WarmUp: 3, Sweeps: 20,
	}
	looks := 0
	for now, err := range fit.SampleSteps(t.Context(), problem, method, run.Settings{Engine: computetest.Go(t)}) {
		if looks++; looks > 8 {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		result, err := now.Now()
		if err != nil {
			t.Fatal(err)
		}
		details := fit.Details[*exchange.Details](result)
		warm, last := looks < 4, details.Powers[2]
		if math.IsNaN(last.Acceptance) != warm || math.IsNaN(last.LogLikelihood) != warm || (details.Outside == 0) != warm ||
			!(last.StepSize > 0) {
			t.Errorf("after step %d: %d states outside, %+v", looks, details.Outside, last)
		}
	}
}

// Doubtful runs say so: too few sweeps for replicas to come down, powers too far apart. The prior and the posterior
// alone are a ladder on each engine.
func TestWarns(t *testing.T) {
	for _, engine := range computetest.Engines(t) {
		result, err := sample(t.Context(), linear(check.Line()), mcmc.RandomWalkMetropolis{}, settings{
			Ladder: []float64{1}, Sets: 4, WarmUp: 5, Sweeps: 6, Engine: engine,
		})
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(result.Warnings, "; ")
		for _, want := range []string{"travelled from the prior", "finer Ladder"} {
			if !strings.Contains(all, want) {
				t.Errorf("%s: no warning says %q: %q", engine.Name(), want, all)
			}
		}
	}
}

// Log-likelihoods too large for float32 are said.
func TestRounds(t *testing.T) {
	for _, dtype := range []compute.DType{compute.Float32, compute.Float64} {
		problem := density.Problem{Dim: 1, Initial: drawNormal(1), Target: func(compute.Nodes, []*graph.Node) density.Target {
			return smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
				return graph.AddScalar(graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5), 1e7)
			}}
		}}
		result, err := sample(t.Context(), problem, mcmc.HMC{Steps: 2}, settings{
			Ladder: []float64{1}, Sets: 8, WarmUp: 20, Sweeps: 100, DType: dtype, Engine: computetest.Go(t),
		})
		if err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(result.Warnings, "; "); strings.Contains(all, "in float32") != (dtype == compute.Float32) {
			t.Errorf("%s: log evidence %.3f, with the warnings %q", dtype, result.LogEvidence, all)
		}
	}
}

// Where replicas creep from where they began all sets are wrong alike: their spread says nothing, the halves do.
func TestDrifts(t *testing.T) {
	line := check.Line()
	result, err := sample(t.Context(), linear(line), mcmc.HMC{StepSize: .01, Steps: 1}, settings{
		Ladder: []float64{.1, 1}, Sets: 32, WarmUp: 1, Sweeps: 100, Engine: computetest.Go(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(result.Warnings, "; "); !strings.Contains(all, "in the first half of the sweeps") ||
		!(result.LogEvidenceStdErr > 3) { // the spread alone gives 1, where the halves differ by 7 to 11
		t.Errorf("log evidence %.2f ± %.2f, with the warnings %q", result.LogEvidence, result.LogEvidenceStdErr, all)
	}
}

func TestRefuses(t *testing.T) {
	good := linear(check.Line())
	with := func(f func(p *density.Problem)) density.Problem {
		p := good
		f(&p)
		return p
	}
	hmc := mcmc.HMC{}
	for _, c := range []struct {
		problem density.Problem
		kernel  mcmc.Kernel
		s       settings
		says    string
	}{
		{good, hmc, settings{Sets: 3}, "Sets is 3: it must be at least 4"},
		{good, hmc, settings{Sets: 1 << 45}, "Sweeps is 500: it must be fewer"},
		{good, hmc, settings{Sets: 1 << 38, Sweeps: 2, Thin: 2}, "numbers in memory"},
		{good, hmc, settings{Sweeps: 1}, "Sweeps is 1"},
		{good, hmc, settings{Sweeps: 10, Thin: 11}, "Thin is 11"},
		{good, hmc, settings{WarmUp: -1}, "WarmUp is -1"},
		{good, hmc, settings{Ladder: []float64{.5, .4, 1}}, "Ladder[1] is 0.4"},
		{good, hmc, settings{Ladder: []float64{.5}}, "Ladder[0] is 0.5"},
		{good, hmc, settings{Ladder: []float64{1e-4, .5, 1}}, "Ladder[1] is 0.5 after 0.0001"},
		{good, mcmc.ULA{StepSize: .1}, settings{}, "leaves no target invariant"},
		{with(func(p *density.Problem) { p.Initial = nil }), hmc, settings{}, "Problem.Initial is nil"},
		{with(func(p *density.Problem) { p.Start = tensors.FromValue([][]float64{{1, 1, 1}}) }), hmc, settings{},
			"Problem.Start is set"},
		{with(func(p *density.Problem) {
			p.Target = func(compute.Nodes, []*graph.Node) density.Target { return density.Func(logNormal) }
		}), hmc, settings{Ladder: []float64{1}}, "not smc.Factored"},
		{with(func(p *density.Problem) {
			p.Initial = func(rng random.Stream, dtype compute.DType, n int) *graph.Node { return rng.Normal(dtype, n, 2) }
		}), hmc, settings{Ladder: []float64{1}}, "it must be [32, 3]"},
	} {
		c.s.Engine = computetest.Go(t)
		if _, err := sample(t.Context(), c.problem, c.kernel, c.s); err == nil ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("it says %v, not %q", err, c.says)
		}
	}
}

// A likelihood that is 0 on a part of the prior has the right evidence, whose first step Bennett's estimator finds far
// below all log-likelihoods that are finite, and draws inside the support. Replicas that still stand outside are
// counted, in neither evidence nor draws, and said; where all do there is no draw.
func TestSupport(t *testing.T) {
	above := func(bound, width float64) func(phi *graph.Node) *graph.Node {
		return func(phi *graph.Node) *graph.Node {
			x := graph.Reshape(phi, phi.Shape().Dim(0))
			l := graph.MulScalar(graph.Square(graph.AddScalar(x, -1)), -.5/(width*width))
			return compute.Only(graph.GreaterThan(x, graph.Scalar(x.Graph(), x.DType(), bound)), l)
		}
	}
	for _, c := range []struct {
		name         string
		bound, width float64
		ladder       []float64
		outside      bool // some replicas stay there after the warm-up
	}{
		{"half of the prior, a found ladder", 0, .3, nil, false}, // which begins with powers of 1e-20 to 1e-5
		{"half of the prior", 0, .3, []float64{.0001, .1, .4, 1}, false},
		{"a sixth of the prior", 1, 1e6, []float64{.01, .4, 1}, true},
		{"hardly any of the prior", 4.5, 1e6, []float64{.1, .4, 1}, true},
	} {
		problem := density.Problem{Dim: 1, Initial: drawNormal(1), Target: func(compute.Nodes, []*graph.Node) density.Target {
			return smc.Posterior{Prior: logNormal, Likelihood: above(c.bound, c.width)}
		}}
		want, squares := 0., 0.
		const n = 100000
		for i := range n {
			x := c.bound + 10*(float64(i)+.5)/n
			want += 10. / n * math.Exp(-.5*x*x-.5*(x-1)*(x-1)/(c.width*c.width)) / math.Sqrt(2*math.Pi)
		}
		for seed := range uint64(2) {
			kernel := []mcmc.Kernel{mcmc.HMC{Steps: 4}, mcmc.RandomWalkMetropolis{}}[seed]
			result, err := sample(t.Context(), problem, kernel, settings{
				Ladder: c.ladder, Sets: 16, WarmUp: 50, Sweeps: 200, Seed: seed, Engine: computetest.Go(t),
			})
			if c.bound > 4 {
				if err == nil || !strings.Contains(err.Error(), "no draw of the posterior") {
					t.Errorf("%s: error %v", c.name, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(result.Warnings, "; ")
			if strings.Contains(all, "a likelihood of 0") != (result.Outside > 0) || strings.Contains(all, "Inf") {
				t.Errorf("%s: %d replicas outside, with the warnings %q", c.name, result.Outside, result.Warnings)
			}
			if !c.outside && result.Outside > 0 {
				t.Errorf("%s: %d replicas outside", c.name, result.Outside)
			}
			phi, err := compute.Float64s(result.Phi)
			if err != nil {
				t.Fatal(err)
			}
			if least := slices.Min(phi); least < c.bound {
				t.Errorf("%s: a draw at %v, where the likelihood is 0", c.name, least)
			}
			off := (result.LogEvidence - math.Log(want)) / result.LogEvidenceStdErr
			squares += off * off
		}
		// Of two squares of t with 15 degrees of freedom one sum in a thousand is above 21.
		if t.Logf("%s: squares %.1f", c.name, squares); !(squares < 21) {
			t.Errorf("%s: the squared errors of two log evidences sum to %.1f", c.name, squares)
		}
	}
}

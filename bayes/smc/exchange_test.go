package smc_test

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
func TestReplicaExchangeIsExact(t *testing.T) {
	if testing.Short() {
		t.Skip("sixty runs take long without a compiler")
	}
	exchangeIsExact(t, computetest.Engines(t)[0], mcmc.HMC{Steps: 3}, 20, .15)
}

func exchangeIsExact(t *testing.T, engine *compute.Engine, kernel mcmc.Kernel, warmUp int, most float64) {
	line := check.Line()
	exchanger := smc.Exchanger{Problem: linear(line), Kernel: kernel}
	defer exchanger.Close()
	s := smc.ExchangeSettings{
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

// Two modes 40 standard deviations apart, which moves never leave, of weights .2 and .8, in 3 dimensions: exchange
// gives each its share, and the evidence, which is exact by convolution. The share's standard error is measured over
// sets.
func TestReplicaExchangeFindsModes(t *testing.T) {
	if testing.Short() {
		t.Skip("five hundred sweeps take long without a compiler")
	}
	const width, place, share, d = .1, 2., .2, 3
	mode := func(phi *graph.Node, at, weight float64) *graph.Node {
		square := graph.ReduceSum(graph.Square(graph.AddScalar(phi, -at)), 1)
		return graph.AddScalar(graph.MulScalar(square, -.5/(width*width)), math.Log(weight))
	}
	problem := density.Problem{Name: "two modes", Dim: d, Initial: drawNormal(d),
		Target: func(compute.Nodes, []*graph.Node) density.Target {
			return smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
				a, b := mode(phi, -place, share), mode(phi, place, 1-share)
				top := graph.StopGradient(graph.Max(a, b))
				return graph.Add(top, graph.Log(graph.Add(graph.Exp(graph.Sub(a, top)), graph.Exp(graph.Sub(b, top)))))
			}}
		}}
	const sets = 24
	result, err := smc.ReplicaExchange(t.Context(), problem, mcmc.HMC{Steps: 4}, smc.ExchangeSettings{
		Ladder: []float64{.001, .003, .008, .02, .05, .12, .3, .6, 1}, Sets: sets, WarmUp: 200, Sweeps: 500, Thin: 5, Seed: 1,
		Engine: computetest.Engines(t)[0],
	})
	if err != nil {
		t.Fatal(err)
	}
	total := 1 + width*width // the marginal variance of each coordinate
	exact := d * (math.Log(width) - .5*math.Log(total) - .5*place*place/total)
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

// A run that was cancelled anywhere goes on from its checkpoint to the same bits, and a finished one is read.
func TestReplicaExchangeResumes(t *testing.T) {
	exchanger := smc.Exchanger{Problem: linear(check.Line()), Kernel: mcmc.HMC{Steps: 2, Jitter: .5}}
	defer exchanger.Close()
	s := smc.ExchangeSettings{Ladder: []float64{.1, 1}, Sets: 4, WarmUp: 2, Sweeps: 4, Seed: 3, Engine: computetest.Go(t)}
	whole, err := exchanger.Sample(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for stop := 1; ; stop++ {
		s.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
		part, err := exchanger.Sample(&countdown{Context: t.Context(), left: stop}, s)
		if err != nil {
			t.Fatal(err)
		}
		if part.Status == run.Completed {
			if stop < 5 {
				t.Fatalf("it looked at the context %d times only", stop)
			}
			break
		}
		if part.Status != run.Cancelled || !math.IsNaN(part.LogEvidence) {
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
	result, err := smc.ReplicaExchange(t.Context(), problem, mcmc.RandomWalkMetropolis{}, smc.ExchangeSettings{
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
func TestReplicaExchangeResumesWithoutALadder(t *testing.T) {
	exchanger := smc.Exchanger{Problem: linear(check.Line()), Kernel: mcmc.HMC{Steps: 2}}
	defer exchanger.Close()
	s := smc.ExchangeSettings{Sets: 4, WarmUp: 2, Sweeps: 4, Seed: 3, Engine: computetest.Go(t)}
	whole, err := exchanger.Sample(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	s.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
	s.CheckpointEvery = time.Nanosecond
	part, err := exchanger.Sample(untilFile{t.Context(), s.Checkpoint}, s)
	if err != nil || part.Status != run.Cancelled || len(part.Powers) == 0 {
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
func TestReplicaExchangeCancelledWithoutALadder(t *testing.T) {
	for _, looks := range []int{1, 4} {
		result, err := smc.ReplicaExchange(&countdown{Context: t.Context(), left: looks}, linear(check.Line()),
			mcmc.HMC{Steps: 2}, smc.ExchangeSettings{Sets: 4, WarmUp: 2, Sweeps: 4, Engine: computetest.Go(t)})
		if err != nil || result.Status != run.Cancelled || len(result.Powers) > 0 || !math.IsNaN(result.LogEvidence) {
			t.Errorf("cancelled at look %d: %+v, error %v", looks, result, err)
		}
	}
}

// A run that is cancelled in its warm-up has no means, and one that is cancelled later counts the states outside so
// far.
func TestReplicaExchangeCancelled(t *testing.T) {
	problem := density.Problem{Dim: 1, Initial: drawNormal(1), Target: func(compute.Nodes, []*graph.Node) density.Target {
		return smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
			x := graph.Reshape(phi, phi.Shape().Dim(0))
			return compute.Only(graph.GreaterThan(x, graph.AddScalar(graph.ZerosLike(x), 4.5)), graph.ZerosLike(x))
		}}
	}}
	s := smc.ExchangeSettings{Ladder: []float64{.1, 1}, Sets: 8, WarmUp: 3, Sweeps: 20, Engine: computetest.Go(t)}
	for _, looks := range []int{2, 8} {
		result, err := smc.ReplicaExchange(&countdown{Context: t.Context(), left: looks}, problem, mcmc.HMC{Steps: 2}, s)
		if err != nil || result.Status != run.Cancelled {
			t.Fatalf("cancelled at look %d: %+v, error %v", looks, result, err)
		}
		warm, last := looks < 4, result.Powers[2]
		if math.IsNaN(last.Acceptance) != warm || math.IsNaN(last.LogLikelihood) != warm || (result.Outside == 0) != warm ||
			!(last.StepSize > 0) {
			t.Errorf("cancelled at look %d: %d states outside, %+v", looks, result.Outside, last)
		}
	}
}

// Doubtful runs say so: too few sweeps for replicas to come down, powers too far apart. The prior and the posterior
// alone are a ladder on each engine.
func TestReplicaExchangeWarns(t *testing.T) {
	for _, engine := range computetest.Engines(t) {
		result, err := smc.ReplicaExchange(t.Context(), linear(check.Line()), mcmc.HMC{Steps: 2}, smc.ExchangeSettings{
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
func TestReplicaExchangeRounds(t *testing.T) {
	for _, dtype := range []compute.DType{compute.Float32, compute.Float64} {
		problem := density.Problem{Dim: 1, Initial: drawNormal(1), Target: func(compute.Nodes, []*graph.Node) density.Target {
			return smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
				return graph.AddScalar(graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5), 1e7)
			}}
		}}
		result, err := smc.ReplicaExchange(t.Context(), problem, mcmc.HMC{Steps: 2}, smc.ExchangeSettings{
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
func TestReplicaExchangeDrifts(t *testing.T) {
	line := check.Line()
	result, err := smc.ReplicaExchange(t.Context(), linear(line), mcmc.HMC{StepSize: .01, Steps: 1}, smc.ExchangeSettings{
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

// Sets beyond 2000 draws a sweep are thinned to one sweep, not more than there are.
func TestManySets(t *testing.T) {
	s, err := smc.ExchangeSettings{Sets: 100000, Sweeps: 10}.WithDefaults()
	if err != nil || s.Thin != 10 {
		t.Errorf("Thin is %d, error %v", s.Thin, err)
	}
}

func TestReplicaExchangeRefuses(t *testing.T) {
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
		s       smc.ExchangeSettings
		says    string
	}{
		{good, hmc, smc.ExchangeSettings{Sets: 3}, "Sets is 3: it must be at least 4"},
		{good, hmc, smc.ExchangeSettings{Sets: 1 << 45}, "Sweeps is 500: it must be fewer"},
		{good, hmc, smc.ExchangeSettings{Sets: 1 << 38, Sweeps: 2, Thin: 2}, "numbers in memory"},
		{good, hmc, smc.ExchangeSettings{Sweeps: 1}, "Sweeps is 1"},
		{good, hmc, smc.ExchangeSettings{Sweeps: 10, Thin: 11}, "Thin is 11"},
		{good, hmc, smc.ExchangeSettings{WarmUp: -1}, "WarmUp is -1"},
		{good, hmc, smc.ExchangeSettings{Ladder: []float64{.5, .4, 1}}, "Ladder[1] is 0.4"},
		{good, hmc, smc.ExchangeSettings{Ladder: []float64{.5}}, "Ladder[0] is 0.5"},
		{good, hmc, smc.ExchangeSettings{Ladder: []float64{1e-4, .5, 1}}, "Ladder[1] is 0.5 after 0.0001"},
		{good, mcmc.ULA{StepSize: .1}, smc.ExchangeSettings{}, "leaves no target invariant"},
		{with(func(p *density.Problem) { p.Initial = nil }), hmc, smc.ExchangeSettings{}, "Problem.Initial is nil"},
		{with(func(p *density.Problem) { p.Start = tensors.FromValue([][]float64{{1, 1, 1}}) }), hmc, smc.ExchangeSettings{},
			"Problem.Start is set"},
		{with(func(p *density.Problem) {
			p.Target = func(compute.Nodes, []*graph.Node) density.Target { return density.Func(logNormal) }
		}), hmc, smc.ExchangeSettings{Ladder: []float64{1}}, "not smc.Factored"},
		{with(func(p *density.Problem) {
			p.Initial = func(rng random.Stream, dtype compute.DType, n int) *graph.Node { return rng.Normal(dtype, n, 2) }
		}), hmc, smc.ExchangeSettings{Ladder: []float64{1}}, "it must be [32, 3]"},
	} {
		c.s.Engine = computetest.Go(t)
		if _, err := smc.ReplicaExchange(t.Context(), c.problem, c.kernel, c.s); err == nil ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("it says %v, not %q", err, c.says)
		}
	}
}

// A likelihood that is 0 on a part of the prior has the right evidence, whose first step Bennett's estimator finds far
// below all log-likelihoods that are finite, and draws inside the support. Replicas that still stand outside are
// counted, in neither evidence nor draws, and said; where all do there is no evidence.
func TestReplicaExchangeSupport(t *testing.T) {
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
		{"a small part of the prior", 2, 1e6, []float64{.1, .4, 1}, true},
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
		for seed := range uint64(4) {
			kernel := []mcmc.Kernel{mcmc.HMC{Steps: 4}, mcmc.RandomWalkMetropolis{}}[seed%2]
			result, err := smc.ReplicaExchange(t.Context(), problem, kernel, smc.ExchangeSettings{
				Ladder: c.ladder, Sets: 16, WarmUp: 50, Sweeps: 300, Seed: seed, Engine: computetest.Go(t),
			})
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
			if c.bound > 4 {
				if !math.IsNaN(result.LogEvidence) || !math.IsNaN(result.LogEvidenceStdErr) || result.Outside == 0 {
					t.Errorf("%s: log evidence %v ± %v, %d replicas outside", c.name, result.LogEvidence,
						result.LogEvidenceStdErr, result.Outside)
				}
				continue
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
		// Of four squares of t with 15 degrees of freedom less than one sum in 10^4 is above 35.
		if t.Logf("%s: squares %.1f", c.name, squares); !(squares < 35) {
			t.Errorf("%s: the squared errors of four log evidences sum to %.1f", c.name, squares)
		}
	}
}

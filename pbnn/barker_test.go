package pbnn

import (
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat/distuv"
)

// X_corr plus a standard normal is logistic to 2e-4 in distribution, and its variance pi^2/3 - 1 to half a percent: the
// sum over the grid against the formulas. Its draws have that distribution.
func TestCorrection(t *testing.T) {
	probabilities := correction()
	total, variance := 0.0, 0.0
	for i, p := range probabilities {
		total += p
		variance += p * correctionAt(i) * correctionAt(i)
	}
	if math.Abs(total-1) > 1e-3 || math.Abs(variance/(math.Pi*math.Pi/3-1)-1) > 5e-3 {
		t.Errorf("total %v, variance %v", total, variance)
	}
	off := 0.0
	for x := -8.0; x <= 8; x += .1 {
		sum := 0.0
		for i, p := range probabilities {
			sum += p / total * distuv.UnitNormal.CDF(x-correctionAt(i))
		}
		off = math.Max(off, math.Abs(sum-1/(1+math.Exp(-x))))
	}
	t.Logf("distance %.2g, total %v, variance %v", off, total, variance)
	if off > 2e-4 {
		t.Errorf("the sum's distribution is off by %.2g", off)
	}
	const draws = 100_000
	x := computetest.Run(t, computetest.Go(t), func(g *Graph, _ []*Node) []*Node {
		rng := random.New(g, 6)
		return []*Node{Add(drawCorrection(rng.Named("a"), compute.Float64, draws),
			rng.Named("b").Normal(compute.Float64, draws))}
	})[0]
	if p := computetest.Kolmogorov(x, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }); p < 1e-4 {
		t.Errorf("the draws are not logistic: Kolmogorov and Smirnov's p %.2g", p)
	}
}

// level is a target on which every proposal differs by the same, seen with noise of variance s of the mean of 80.
type level struct {
	density.Target
	difference, s float64
}

func (l level) WithMiniBatch(random.Stream) density.Target { return l }

func (l level) Differences(rng random.Stream, from, _ *Node) (estimates, variance *Node, degrees float64) {
	noise := rng.Normal(from.DType(), from.Shape().Dim(0), 80)
	return AddScalar(MulScalar(noise, math.Sqrt(80*l.s)), l.difference), nil, 0
}

// Whatever the noise, a difference of the log-densities is accepted with Barker's probability, 1/(1 +
// exp(-difference)): by 10 000 particles, within five standard errors. One that noise cannot hide takes one round.
func TestBarkerProbability(t *testing.T) {
	const particles = 10_000
	for _, l := range []level{{difference: 1, s: .05}, {difference: -1.5, s: .4}, {difference: 2, s: .7},
		{difference: -.5, s: .6}, {difference: -1000, s: 1000}, {difference: 1000, s: 1000}} {
		out := computetest.Run(t, computetest.Go(t), func(g *Graph, a []*Node) []*Node {
			k := barker{kernel{Proposal: RandomWalk, Estimate: MeanOfBatches, Rule: Corrected, StepSize: 1}}
			_, info := k.Move(random.New(g, 3), k.Start(random.New(g, 4), mcmc.State{Phi: a[0]}), l, mcmc.Tuning{})
			return []*Node{ReduceAllMean(info.Accepted), ReduceAllMean(info.Complete)}
		}, compute.Floats(compute.Float64, make([]float64, particles), particles, 1))
		want := 1 / (1 + math.Exp(-l.difference))
		if got := out[0][0] / out[1][0]; out[1][0] < .95 || math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/particles) {
			t.Errorf("%+v: accepted %.4f of %.3f that were judged, want %.4f", l, got, out[1][0], want)
		}
	}
}

// seesBlurredInRounds is barker on what a target becomes through noise.
type seesBlurredInRounds struct {
	barker
	blur    float64
	batches int
}

func (k seesBlurredInRounds) Move(
	rng random.Stream, s mcmc.State, target density.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	return k.barker.Move(rng, s, blurred{target, k.blur, k.batches}, tuning)
}

// Barker's test leaves every target invariant, with noise that takes several rounds for most proposals.
func TestBarkerInvariant(t *testing.T) {
	t.Parallel()
	barkerInvariant(t, RandomWalk)
}

func barkerInvariant(t *testing.T, proposal Proposal) {
	t.Helper()
	k := seesBlurredInRounds{barker{kernel{Proposal: proposal, Estimate: MeanOfBatches, Rule: Corrected, StepSize: .9}},
		1.2, 12}
	check.Kernel(t, k, check.Options{Engine: computetest.Go(t), DType: compute.Float64, Particles: 300, Transitions: 12,
		Slow: true, Targets: []check.Target{check.Skewed(), check.Conjugate()}})
}

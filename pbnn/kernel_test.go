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
)

// blurred is a distribution seen through exactly Gaussian noise, which the penalty method assumes: differences have
// errors of standard deviation blur |to - from|, those of the mean of M, and each draw's gradient is off by a constant.
// Every particle has noise of its own, as the harness wants.
type blurred struct {
	density.Target
	blur    float64
	batches int
}

func (b blurred) WithMiniBatch(rng random.Stream) density.Target {
	return density.Func(func(phi *Node) *Node {
		tilt := MulScalar(rng.Normal(phi.DType(), phi.Shape().Dimensions...), b.blur)
		return Add(b.LogDensity(phi), ReduceSum(Mul(phi, tilt), 1))
	})
}

func (b blurred) Differences(rng random.Stream, from, to *Node) (estimates, variance *Node, degrees float64) {
	m := float64(b.batches)
	ofMean := MulScalar(ReduceSum(Square(Sub(to, from)), 1), b.blur*b.blur) // [J]
	errors := Mul(rng.Normal(from.DType(), from.Shape().Dim(0), b.batches),
		MulScalar(ExpandAxes(Sqrt(ofMean), 1), math.Sqrt(m)))
	exact := Sub(b.LogDensity(to), b.LogDensity(from))
	return Add(ExpandAxes(exact, 1), errors), MulScalar(ofMean, m), 1e9 // as if from so many rows: known
}

// seesBlurred is the kernel on what a target becomes through noise.
type seesBlurred struct {
	kernel
	blur    float64
	batches int
}

func (k seesBlurred) Move(
	rng random.Stream, s mcmc.State, target density.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	return k.kernel.Move(rng, s, blurred{target, k.blur, k.batches}, tuning)
}

// walks and drifts take steps at which sigma^2 is about 1: mean squared jumps are D h^2.
func walks(e Estimate, r Rule, batches int) seesBlurred {
	k := seesBlurred{kernel: kernel{Proposal: randomWalk, Estimate: e, Rule: r, StepSize: .9}, blur: .7, batches: batches}
	if e == OneBatch { // M times the variance of the mean
		k.blur /= math.Sqrt(float64(batches))
	}
	return k
}

func drifts(e Estimate, r Rule, batches int) seesBlurred {
	k := walks(e, r, batches)
	k.Proposal, k.StepSize = Langevin, .7
	return k
}

// louder has more noise.
func louder(k seesBlurred, times float64) seesBlurred {
	k.blur *= times
	return k
}

// With Gaussian noise the corrected penalty leaves every target of the harness invariant, though the variance is
// estimated; other estimates and rules are the same lines with the numbers that TestEstimates has. False-alarm rate
// 0.001 a kernel (package check).
func TestInvariantUnderGaussianNoise(t *testing.T) {
	t.Parallel()
	for _, k := range []seesBlurred{walks(MeanOfBatches, Corrected, 12), drifts(MeanOfBatches, Corrected, 12)} {
		check.Kernel(t, k, invariance(t))
	}
}

func invariance(t *testing.T) check.Options {
	return check.Options{Engine: computetest.Go(t), DType: compute.Float64, Particles: 600, Transitions: 20, Slow: true}
}

// The same tests find that the penalty is missing.
func TestFaultsUnderGaussianNoise(t *testing.T) {
	t.Parallel()
	for _, k := range []seesBlurred{walks(MeanOfBatches, Naive, 12), louder(drifts(MeanOfBatches, Naive, 12), 2)} {
		report, err := check.Run(k, invariance(t))
		if err != nil {
			t.Fatal(err)
		}
		if t.Log(report.Summary()); report.Failures() == 0 {
			t.Errorf("naive, %s: passes", k.Proposal)
		}
	}
}

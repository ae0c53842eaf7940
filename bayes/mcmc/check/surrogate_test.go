package check

import (
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	. "github.com/gomlx/gomlx/core/graph"
)

// surrogates are cheap targets of every quality. Each has mass wherever the targets have.
var surrogates = []struct {
	name string
	slow bool // too bad to be reached from far
	of   func(target density.Target) density.Target
}{
	{"right", false, func(target density.Target) density.Target { return target }},
	{"wrong", false, func(target density.Target) density.Target { // wider, and its mean elsewhere
		return density.Func(func(phi *Node) *Node {
			tilt := ReduceSum(Mul(phi, row(phi, []float64{.4, -.3})), 1)
			return Add(MulScalar(target.LogDensity(phi), .7), tilt)
		})
	}},
	{"useless", true, func(density.Target) density.Target {
		return density.Func(func(phi *Node) *Node { return halfSquares(DivScalar(phi, 3)) })
	}},
	{"stuck", true, func(density.Target) density.Target { // far from every target, and narrow
		return density.Func(func(phi *Node) *Node { return halfSquares(DivScalar(AddScalar(phi, 20), .3)) })
	}},
}

// delayed is delayed acceptance on a target with that surrogate.
type delayed struct {
	mcmc.DelayedAcceptance
	of func(target density.Target) density.Target
}

func (k delayed) Start(rng random.Stream, s mcmc.State, target density.Target) mcmc.State {
	return k.DelayedAcceptance.Start(rng, s, surrogated{target, k.of(target)})
}

func (k delayed) Move(
	rng random.Stream, s mcmc.State, target density.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	return k.DelayedAcceptance.Move(rng, s, surrogated{target, k.of(target)}, tuning)
}

type surrogated struct {
	density.Target
	cheap density.Target
}

func (s surrogated) Surrogate() density.Target { return s.cheap }

// Delayed acceptance leaves every target invariant, by whatever surrogate.
func TestDelayedAcceptance(t *testing.T) {
	t.Parallel()
	engine := computetest.Go(t)
	for i, s := range surrogates {
		pcn := mcmc.PreconditionedCrankNicolson{Beta: .6, StdDev: []float64{1.5, 1.5}}
		inner := []mcmc.Kernel{
			mcmc.RandomWalkMetropolis{StepSize: 1}, mcmc.HMC{StepSize: .5, Steps: 2, Jitter: .5}, mcmc.MALA{StepSize: .7},
			delayed{mcmc.DelayedAcceptance{Inner: pcn}, surrogates[1].of},
		}[i]
		t.Run(s.name, func(t *testing.T) {
			o := Options{Engine: engine, DType: compute.Float64, Particles: 400, Transitions: 40, Slow: s.slow}
			Kernel(t, delayed{mcmc.DelayedAcceptance{Inner: inner, Share: .1}, s.of}, o)
		})
	}
}

package check

import (
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/mcmc"
)

// smooth are the targets of kernels that move by a gradient and reject nothing: a bound would stop none of them.
func smooth() []Target {
	return []Target{Gaussian([]float64{1, -.7}, [][]float64{{1.5}, {-.4, .7}}), Mixture(), Conjugate()}
}

// kernels are those of package mcmc, with what each claims. Those that are biased are given steps at which the bias is below what can be seen.
var kernels = []struct {
	kernel  mcmc.Kernel
	options Options
}{
	{mcmc.RandomWalkMetropolis{StepSize: 1.2}, Options{}},
	{mcmc.RandomWalkMetropolis{}, Options{StepSize: .9, Scale: []float64{1.5, 1}}},
	{mcmc.PreconditionedCrankNicolson{Beta: .5, Mean: []float64{.3, -.2}, StdDev: []float64{1.5, 1.3}}, Options{}},
	{mcmc.OrnsteinUhlenbeck{Mean: []float64{1, -.5}, StdDev: []float64{2, .5}}, Options{Targets: []Target{Gaussian([]float64{1, -.5}, [][]float64{{2}, {0, .5}})}}},
	{mcmc.MALA{StepSize: .8}, Options{}},
	{mcmc.MALA{}, Options{StepSize: .6, Scale: []float64{1.5, .9}}},
	{mcmc.HMC{StepSize: .35, Steps: 4}, Options{Transitions: 50}},
	{mcmc.HMC{StepSize: .5, Steps: 4, Jitter: .5}, Options{Transitions: 40, Scale: []float64{1.2, .8}}},
	{mcmc.NUTS{StepSize: .5}, Options{Transitions: 20}},
	{mcmc.NUTS{StepSize: .4, MaxDepth: 2}, Options{Transitions: 60, Scale: []float64{1.2, .8}}},
	{mcmc.ULA{StepSize: .2}, Options{Targets: smooth(), Slow: true}},
	{mcmc.SGLD{StepSize: .04}, Options{Targets: smooth(), Slow: true}},
	{mcmc.SGLD{StepSize: .08, Decay: .55, Offset: 2}, Options{Targets: smooth(), Slow: true, NotReversible: true}},
	{mcmc.SGHMC{LearningRate: .01}, Options{Targets: smooth(), NotReversible: true, Slow: true}},
	{mcmc.SGHMC{LearningRate: .005, Friction: .3, Resample: 7}, Options{Targets: smooth(), NotReversible: true, Slow: true}},
	{turning{}, Options{Targets: []Target{Gaussian([]float64{1, -.5}, [][]float64{{1}, {0, 1}})}, NotReversible: true}},
}

// Every kernel passes, on every backend and in both types. A step of float32 or of another backend differs in rounding alone: fewer chains do for all but
// the first.
func TestKernels(t *testing.T) {
	particles := 1000
	computetest.Each(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		if testing.Short() {
			particles = 300
		}
		for _, k := range kernels {
			o := k.options
			o.Engine, o.DType, o.Particles = engine, dtype, particles
			Kernel(t, k.kernel, o)
		}
		particles = 400
	})
}

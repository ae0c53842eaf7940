package check

import (
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/mcmc"
)

// smooth are the targets of kernels that move by a gradient and reject nothing: a bound would stop none of them.
func smooth() []Target {
	return []Target{gaussian([]float64{1, -.7}, [][]float64{{1.5}, {-.4, .7}}), mixture(), conjugate()}
}

// kernels are those of package mcmc, with what each claims. Those that are biased are given steps at which the bias is
// too small to be found. The second of a kind, a variation such as other settings, is tested on the Go backend alone,
// which need not compile it, and on the two targets that have a bound, and data.
var kernels = []struct {
	kernel  mcmc.Kernel
	options Options
	second  bool
}{
	{kernel: mcmc.RandomWalkMetropolis{StepSize: 1.2}},
	{kernel: mcmc.RandomWalkMetropolis{}, options: Options{stepSize: .9, scale: []float64{1.5, 1}}, second: true},
	{kernel: mcmc.PreconditionedCrankNicolson{Beta: .5, StdDev: []float64{1.5, 1.3}}},
	{
		kernel:  mcmc.OrnsteinUhlenbeck{Mean: []float64{1, -.5}, StdDev: []float64{2, .5}},
		options: Options{Targets: []Target{gaussian([]float64{1, -.5}, [][]float64{{2}, {0, .5}})}},
	},
	{kernel: mcmc.MALA{}, options: Options{stepSize: .6, scale: []float64{1.5, .9}}},
	{kernel: mcmc.MALA{StepSize: .8}, second: true},
	{
		kernel:  mcmc.HMC{StepSize: .5, Steps: 4, Jitter: .5},
		options: Options{Transitions: 40, scale: []float64{1.2, .8}},
	},
	{kernel: mcmc.HMC{StepSize: .35, Steps: 4}, options: Options{Transitions: 50}, second: true},
	{kernel: mcmc.NUTS{StepSize: .5, MaxDepth: 5}, options: Options{Transitions: 12}},
	{
		kernel:  mcmc.NUTS{StepSize: .4, MaxDepth: 2},
		options: Options{Transitions: 50, scale: []float64{1.2, .8}}, second: true,
	},
	{
		kernel: mcmc.MCLMC{StepSize: .25}, options: Options{Targets: smooth(), NotReversible: true, Slow: true},
		second: true,
	},
	// not reversible, since its steps shrink
	{
		kernel:  mcmc.SGLD{StepSize: .08, Decay: .55, Offset: 2},
		options: Options{Targets: smooth(), Slow: true, NotReversible: true},
	},
	{kernel: mcmc.SGLD{StepSize: .04}, options: Options{Targets: smooth(), Slow: true}, second: true},
	{
		kernel:  mcmc.SGHMC{LearningRate: .005, Friction: .3},
		options: Options{Targets: smooth(), NotReversible: true, Slow: true},
	},
	{
		kernel: mcmc.SGHMC{LearningRate: .01}, options: Options{Targets: smooth(), NotReversible: true, Slow: true},
		second: true,
	},
	{
		kernel:  turning{},
		options: Options{Targets: []Target{gaussian([]float64{1, -.5}, [][]float64{{1}, {0, 1}})}, NotReversible: true},
		second:  true,
	},
}

// Every kernel passes, on XLA in float32 and on the Go backend in float64; TestKernelsLong has the other two pairs.
// Types and backends differ in rounding alone, so that only the Go backend, which compiles nothing, takes all targets
// and chains, for the first of each kind.
func TestKernels(t *testing.T) {
	t.Parallel()
	computetest.Pair(t, passKernels)
}

func passKernels(t *testing.T, engine *compute.Engine, dtype compute.DType) {
	particles := 400
	if dtype == compute.Float32 {
		particles = 300
	}
	if testing.Short() {
		particles = 300
	}
	for _, k := range kernels {
		if k.second && engine.IsXLA() || testing.Short() && (k.second || dtype == compute.Float32) {
			continue
		}
		o := k.options
		o.Engine, o.DType, o.Particles = engine, dtype, particles
		if o.Targets == nil && (k.second || engine.IsXLA()) {
			o.Targets = []Target{bounded(), conjugate()}
		}
		Kernel(t, k.kernel, o)
	}
}

package ohsmc

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
)

// drifting is a kernel of a user's own that asks no target, but carries a state of its own.
type drifting struct{ mcmc.RandomWalk }

func (drifting) Start(_ random.Stream, s mcmc.State, _ density.Target) mcmc.State { return s }

// silent is a kernel of a user's own whose traits do not promise that it leaves its target invariant.
type silent struct{ mcmc.Kernel }

func (silent) Traits() mcmc.Traits { return mcmc.Traits{Carries: mcmc.CarriesGradient} }

// moody is a kernel that JSON cannot write.
type moody struct {
	mcmc.MALA
	Mood func() float64
}

// moodyWalk is one that moves freely.
type moodyWalk struct {
	mcmc.RandomWalk
	Mood func() float64
}

// A setting that is wrong, a kernel that does not do what an algorithm rests on, and one that no checkpoint could know
// are refused before anything runs.
func TestRefusedSettings(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		algorithm fit.Method
		words     []string
	}{
		{Guided{StepSize: train.Constant(-.1)}, []string{"Guided.StepSize", "-0.1"}},
		{Guided{StepSize: train.Schedule{Decay: -1}}, []string{"Guided.StepSize", "-1"}},
		{Guided{Adapt: nan}, []string{"Guided.Adapt is NaN"}},
		{Guided{Adapt: 1.5}, []string{"Guided.Adapt is 1.5"}},
		{Guided{Proposal: HMC{Steps: 500}}, []string{"HMC.Steps is 500"}},
		{OpenHorizon{Kernel: mcmc.RandomWalk{Variance: -1}}, []string{"RandomWalk.Variance is -1"}},
		{SMC{Kernel: mcmc.RandomWalkMetropolis{}}, []string{"StepSize is 0"}},
		{SMC{Kernel: mcmc.MALA{StepSize: nan}}, []string{"NaN"}},
		{SMC{Moves: -3}, []string{"SMC.Moves is -3"}},
		{OpenHorizon{Kernel: mcmc.MALA{StepSize: .1}},
			[]string{"OpenHorizon.Kernel is mcmc.MALA", "asks its target", "mcmc.RandomWalk"}},
		{OpenHorizon{Kernel: drifting{}},
			[]string{"OpenHorizon.Kernel is ohsmc.drifting", "a state of its own", "mcmc.RandomWalk"}},
		{SMC{Kernel: mcmc.RandomWalk{}}, []string{"SMC.Kernel is mcmc.RandomWalk", "invariant", "mcmc.RandomWalkMetropolis"}},
		{SMC{Kernel: silent{mcmc.MALA{StepSize: .1}}}, []string{"SMC.Kernel is ohsmc.silent", "mcmc.Traits"}},
		{OpenHorizon{Kernel: moodyWalk{}}, []string{"ohsmc.OpenHorizon", "JSON"}},
		{SMC{Kernel: moody{MALA: mcmc.MALA{StepSize: .1}}}, []string{"ohsmc.SMC", "JSON"}},
	} {
		_, err := fit.Fit(t.Context(), fittest.Line(1), c.algorithm, dataset.Parts{Train: fittest.Data(10)},
			run.Settings{Engine: computetest.Go(t)})
		computetest.WantError(t, fmt.Sprintf("%T", c.algorithm), err, c.words...)
	}
	learnt := fittest.Line(1)
	learnt.Prior = bayes.LearntPrecision{}
	_, err := fit.Fit(t.Context(), learnt, OpenHorizon{Kernel: mcmc.OrnsteinUhlenbeck{}},
		dataset.Parts{Train: fittest.Data(10)}, run.Settings{})
	computetest.WantError(t, "an Ornstein-Uhlenbeck kernel under another prior", err, "LearntPrecision")
}

// hidden is a kernel with a setting that JSON does not see.
type hidden struct {
	mcmc.RandomWalk
	variance float64
}

func (h hidden) Move(
	rng random.Stream, s mcmc.State, target density.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	return mcmc.RandomWalk{Variance: h.variance}.Move(rng, s, target, tuning)
}

// Programs that were compiled for a kernel do not serve another that JSON does not distinguish from it.
func TestHiddenSettings(t *testing.T) {
	var all [][]float64
	for _, variance := range []float64{1e-6, 1} {
		result, _ := fitted(t, fittest.Small, OpenHorizon{
			Training: particles.Training{Particles: 10, BatchSize: 36, Epochs: 2}, Kernel: hidden{variance: variance},
		}, fittest.Parts(t, 60), run.Settings{})
		all = append(all, fittest.Numbers(t, result.Posterior))
	}
	if slices.Equal(all[0], all[1]) {
		t.Error("two kernels were taken for one")
	}
}

package ohsmc

import (
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
)

// drifting is a kernel of a user's own that asks no target, but carries a state of its own.
type drifting struct{ mcmc.RandomWalk }

func (drifting) Start(_ random.Stream, s mcmc.State) mcmc.State { return s }

// silent is a kernel of a user's own that does not say that it leaves its target invariant.
type silent struct{ mcmc.Kernel }

func (silent) Traits() mcmc.Traits { return mcmc.Traits{Carries: mcmc.CarriesGradient} }

// A kernel that does not do what an algorithm rests on is refused before anything runs, with its name and one to take.
func TestWrongKernels(t *testing.T) {
	says := func(err error, words ...string) {
		t.Helper()
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("error %v does not say %q", err, w)
			}
		}
	}
	data := dataset.Parts{Train: linear(10)}
	settings := Settings{Particles: 10, BatchSize: 5, Epochs: 1, Engine: computetest.Go(t)}
	for _, c := range []struct {
		algorithm fit.Method
		says      []string
	}{
		{OpenHorizon{Kernel: mcmc.ULA{StepSize: .1}}, []string{"OpenHorizon.Kernel is mcmc.ULA", "asks its target",
			"mcmc.RandomWalk"}},
		{OpenHorizon{Kernel: mcmc.SGLD{StepSize: .1}}, []string{"OpenHorizon.Kernel is mcmc.SGLD", "asks its target"}},
		{OpenHorizon{Kernel: mcmc.MALA{StepSize: .1}}, []string{"OpenHorizon.Kernel is mcmc.MALA", "asks its target"}},
		{OpenHorizon{Kernel: drifting{}}, []string{"OpenHorizon.Kernel is ohsmc.drifting", "a state of its own",
			"mcmc.RandomWalk"}},
		{SMC{Kernel: mcmc.RandomWalk{}}, []string{"SMC.Kernel is mcmc.RandomWalk", "invariant", "mcmc.RandomWalkMetropolis"}},
		{SMC{Kernel: mcmc.ULA{StepSize: .1}}, []string{"SMC.Kernel is mcmc.ULA", "invariant"}},
		{SMC{Kernel: silent{mcmc.MALA{StepSize: .1}}}, []string{"SMC.Kernel is ohsmc.silent", "mcmc.Traits"}},
	} {
		_, err := Fit(t.Context(), bayesianLine(1), c.algorithm, data, settings)
		says(err, c.says...)
	}
}

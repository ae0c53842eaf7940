package ohsmc

import (
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
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

// A kernel that no checkpoint could know is an error before anything is computed; one of which JSON does not see all is
// not taken for another by a trainer.
func TestKernelsThatJSONDoesNotKnow(t *testing.T) {
	p := parts(t)
	settings := Settings{Particles: 10, BatchSize: 36, Epochs: 2, Engine: computetest.Go(t)}
	for name, algorithm := range map[string]fit.Method{
		"ohsmc.OpenHorizon": OpenHorizon{Kernel: moodyWalk{}}, "ohsmc.SMC": SMC{Kernel: moody{MALA: mcmc.MALA{StepSize: .1}}},
	} {
		result, err := Fit(t.Context(), small, algorithm, p, settings)
		if err == nil || result != nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "JSON") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var all [][]float64
	for _, variance := range []float64{1e-6, 1} {
		result, err := Fit(t.Context(), small, OpenHorizon{Kernel: hidden{variance: variance}}, p, settings)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, numbers(t, result.Posterior))
	}
	if slices.Equal(all[0], all[1]) {
		t.Error("two kernels were taken for one")
	}
}

package smc_test

import (
	"path/filepath"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/internal/kerneltest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/graph"
)

// changed is a kernel of a user's own, as its type says.
type changed struct{ kerneltest.Changed }

// Tempered refuses a kernel of a user's own that carries the log-density or the gradient of another place, as
// mcmc.Chains do; the library's kernels, as a user's own embeds them, run.
func TestKernelCarriesAnotherPlace(t *testing.T) {
	posterior := smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
		return graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -2)
	}}
	problem := density.Problem{Dim: 3, Initial: initial(3, func(z *graph.Node) *graph.Node { return z }),
		Target: func(compute.Nodes, []*graph.Node) density.Target { return posterior }}
	same := kerneltest.Same
	walk, mala := mcmc.RandomWalkMetropolis{StepSize: .8}, mcmc.MALA{StepSize: .9}
	const otherPlace = "is not that of State.Phi"
	for _, c := range []struct {
		name   string
		kernel mcmc.Kernel
		change kerneltest.Change
		says   string // empty: it is right
	}{
		{"stale", walk, kerneltest.StaleDensity, "the State.LogDensity of "},
		{"stale, MALA", mala, kerneltest.StaleDensity, otherPlace},
		{"stale gradient", mala, kerneltest.StaleGradient, "the State.Gradient of "},
		{"of the proposal", walk, kerneltest.DensityOfRejected, otherPlace},

		{"walk", walk, same, ""}, {"MALA", mala, same, ""},
		{"pCN", mcmc.PreconditionedCrankNicolson{Beta: .3}, same, ""},
		{"HMC", mcmc.HMC{StepSize: .4, Steps: 5, Jitter: .3}, same, ""}, {"NUTS", mcmc.NUTS{StepSize: .3}, same, ""},
	} {
		kernel := changed{kerneltest.Changed{Kernel: c.kernel, Change: c.change}}
		sample := func(settings setup) func() error {
			return func() error {
				settings.Particles, settings.Moves, settings.Engine = 64, 2, computetest.Go(t)
				_, err := draw(t.Context(), problem, kernel, settings)
				return err
			}
		}
		for name, sampled := range map[string]func() error{
			"all":        sample(setup{}),
			"waste-free": sample(setup{WasteFree: 4, Moves: 1}),
		} {
			err := sampled()
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%s, %s: %v; want %q", c.name, name, err, c.says)
			}
		}
	}
}

// twoSteps is a random walk that makes two moves with the same random numbers.
type twoSteps struct{ mcmc.RandomWalkMetropolis }

func (k twoSteps) Move(
	rng random.Stream, s mcmc.State, target density.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	s, _ = k.RandomWalkMetropolis.Move(rng, s, target, tuning)
	return k.RandomWalkMetropolis.Move(rng, s, target, tuning)
}

// A kernel of a user's own that draws from one stream twice is warned of, also where a finished run is read again.
func TestKernelDrawsTwice(t *testing.T) {
	problem := density.Problem{Dim: 3, Initial: initial(3, func(z *graph.Node) *graph.Node { return z }),
		Target: func(compute.Nodes, []*graph.Node) density.Target {
			return smc.Posterior{Prior: logNormal, Likelihood: logNormal}
		}}
	kernel := twoSteps{mcmc.RandomWalkMetropolis{StepSize: .5}}
	file := filepath.Join(t.TempDir(), "run")
	s := setup{Particles: 64, Moves: 1, Engine: computetest.Go(t), Checkpoint: file}
	var all [][]string
	for range 2 { // the second reads the finished runs
		sampled, err := draw(t.Context(), problem, kernel, s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sampled.Warnings)
	}
	for _, warnings := range all {
		if said := strings.Join(warnings, "; "); !strings.Contains(said, `"proposal": own_kernel_test.go:`) {
			t.Errorf("warns %q", said)
		}
	}
}

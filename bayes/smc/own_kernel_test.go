package smc_test

import (
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/internal/kerneltest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
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
		{"stale gradient", mala, kerneltest.StaleGradient, "the State.Gradient of "},
		{"of the proposal", walk, kerneltest.DensityOfRejected, otherPlace},

		{"walk", walk, same, ""}, {"MALA", mala, same, ""},
		{"NUTS", mcmc.NUTS{StepSize: .3}, same, ""},
	} {
		kernel := changed{kerneltest.Changed{Kernel: c.kernel, Change: c.change}}
		for _, wasteFree := range []int{0, 4} {
			method := smc.Tempered{Kernel: kernel, Particles: 64, Moves: 2, WasteFree: wasteFree}
			_, err := fit.Sample(t.Context(), problem, method, run.Settings{Engine: computetest.Go(t)})
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%s, waste-free %d: %v; want %q", c.name, wasteFree, err, c.says)
			}
		}
	}
}

package mcmc_test

import (
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
)

// Chains that disagree on a density of the user's own, or see little of it, are doubted; those of normals are not.
// x + y is N(0, .01^2) and x - y N(0, 100^2) where they are collinear; the scales are 1e12 and 1e-12; the Cauchys have
// heavy tails.
func TestChainsApart(t *testing.T) {
	at := func(phi *Node, k int) *Node { return Reshape(Slice(phi, AxisRange(), AxisElem(k)), phi.Shape().Dim(0)) }
	normal := func(x *Node, sd float64) *Node { return MulScalar(Square(DivScalar(x, sd)), -.5) }
	targets := map[string]density.Func{
		"collinear": func(phi *Node) *Node {
			return Add(normal(Add(at(phi, 0), at(phi, 1)), .01), normal(Sub(at(phi, 0), at(phi, 1)), 100))
		},
		"scales":  func(phi *Node) *Node { return Add(normal(at(phi, 0), 1e12), normal(at(phi, 1), 1e-12)) },
		"Cauchys": func(phi *Node) *Node { return Neg(ReduceSum(Log1P(Square(phi)), 1)) },
		"normals": func(phi *Node) *Node { return Add(normal(at(phi, 0), 2), normal(at(phi, 1), .5)) },
	}
	nuts, hmc := mcmc.NUTS{MaxDepth: 3}, mcmc.HMC{}
	for _, c := range []struct {
		target string
		kernel mcmc.Kernel
		draws  int
		says   string // empty: nothing is doubted
	}{
		{"collinear", nuts, 100, "the 4 chains disagree: R-hat is up to "},
		{"collinear", hmc, 100, "the 4 chains disagree: R-hat is up to "},
		{"collinear", mcmc.MCLMC{}, 100, "the 4 chains disagree: R-hat is up to "},
		{"scales", nuts, 100, "R-hat is up to +Inf"}, {"scales", hmc, 100, "R-hat is up to +Inf"},
		{"Cauchys", nuts, 300, "the effective sample size is as small as "},
		{"Cauchys", hmc, 300, "fraction of missing information"},
		{"normals", nuts, 300, ""}, {"normals", mcmc.MCLMC{}, 300, ""},
	} {
		problem := density.Problem{Dim: 2, Target: func(compute.Nodes, []*Node) density.Target { return targets[c.target] }}
		result, err := fit.Sample(t.Context(), problem, mcmc.Chains{Kernel: c.kernel, WarmUp: c.draws, Draws: c.draws},
			run.Settings{Seed: 3, Engine: computetest.Go(t)})
		if err != nil {
			t.Errorf("%s, %T: %v", c.target, c.kernel, err)
			continue
		}
		t.Logf("%s, %T: %q", c.target, c.kernel, result.Warnings)
		if all := strings.Join(result.Warnings, "; "); !strings.Contains(all, c.says) || c.says == "" && all != "" {
			t.Errorf("%s, %T: %q, want %q", c.target, c.kernel, result.Warnings, c.says)
		}
	}
}

package mcmc

import (
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"

	. "github.com/gomlx/gomlx/core/graph"
)

// Moves that a kernel without an accept/reject step undid are warned of; one that rejects does so of itself.
func TestUndoneMoves(t *testing.T) {
	for _, c := range []struct {
		kernel    Kernel
		nonFinite int
		warns     bool
	}{
		{SGHMC{LearningRate: 1}, 50, true}, {MCLMC{StepSize: 1}, 50, true}, {ULA{StepSize: 1}, 2, false},
		{MALA{StepSize: 1}, 50, false},
	} {
		doubts := (&sampling{kernel: c.kernel}).doubts([]ChainStats{{Transitions: 500, NonFinite: c.nonFinite}})
		warns := strings.Contains(strings.Join(doubts.Sentences(), " "), "was not finite, and the chain went back")
		if warns != c.warns {
			t.Errorf("%T, %d of 500: %q", c.kernel, c.nonFinite, doubts)
		}
	}
}

// Of all kernels those need the warning that count moves which are not finite, and do not say which were accepted.
func TestUndoes(t *testing.T) {
	normal := independentNormal([]float64{0, 0}, []float64{1, 1})
	for _, kernel := range []Kernel{
		ULA{StepSize: 1}, SGLD{StepSize: 1}, SGHMC{LearningRate: .1}, MCLMC{StepSize: 1}, RandomWalkMetropolis{StepSize: 1},
		PreconditionedCrankNicolson{Beta: .5, StdDev: []float64{1, 1}}, MALA{StepSize: 1}, HMC{StepSize: 1, Steps: 2},
		NUTS{StepSize: 1, MaxDepth: 3}, RandomWalk{Variance: 1}, OrnsteinUhlenbeck{},
	} {
		accepts, counts := false, false
		computetest.Run(t, computetest.Go(t), func(g *Graph, a []*Node) []*Node {
			s := Start(kernel, random.New(g, 1), a[0], normal)
			next, info := kernel.Move(random.New(g, 2), s, normal, Tuning{})
			accepts, counts = info.Accepted != nil, info.NonFinite != nil
			return []*Node{next.Phi}
		}, compute.Floats(compute.Float64, []float64{.5, 0}, 1, 2))
		if want := counts && !accepts; undoes(kernel) != want {
			t.Errorf("%T undoes steps: %v, want %v", kernel, !want, want)
		}
	}
}

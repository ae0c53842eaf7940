package mcmc

import (
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// Moves that a kernel without an accept/reject step undid are warned of; one that rejects does so of itself.
func TestUndoneMoves(t *testing.T) {
	for _, c := range []struct {
		kernel    Kernel
		nonFinite int
		warns     bool
	}{
		{SGHMC{LearningRate: 1}, 50, true}, {MCLMC{StepSize: 1}, 50, true}, {SGLD{StepSize: 1}, 2, false},
		{MALA{StepSize: 1}, 50, false},
	} {
		r := &sampling{Chains: Chains{Kernel: c.kernel}}
		carrier, err := NewCarrier(computetest.Go(t), c.kernel, shapes.Make(compute.Float64, 1, 2),
			func(*Graph) density.Target { return normalAt(0, 1) })
		if err != nil {
			t.Fatal(err)
		}
		r.Reported = carrier.reportedFields()
		doubts := r.doubts([]ChainStats{{Transitions: 500, NonFinite: c.nonFinite}})
		warns := strings.Contains(strings.Join(doubts.Sentences(), " "), "was not finite, and the chain went back")
		if warns != c.warns {
			t.Errorf("%T, %d of 500: %q", c.kernel, c.nonFinite, doubts)
		}
	}
}

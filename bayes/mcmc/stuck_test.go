package mcmc

import (
	"strings"
	"testing"
)

// Moves that a kernel without an accept/reject step undid are warned of; one that rejects does so of itself.
func TestUndoneMovesAreSaid(t *testing.T) {
	for _, c := range []struct {
		kernel    Kernel
		nonFinite int
		warns     bool
	}{{SGHMC{LearningRate: 1}, 50, true}, {ULA{StepSize: 1}, 2, false}, {MALA{StepSize: 1}, 50, false}} {
		doubts := (&sampling{kernel: c.kernel}).doubts([]ChainStats{{Transitions: 500, NonFinite: c.nonFinite}})
		said := strings.Contains(strings.Join(doubts, " "), "was not finite, and the chain went back")
		if said != c.warns {
			t.Errorf("%T, %d of 500: %q", c.kernel, c.nonFinite, doubts)
		}
	}
}

//go:build long

package study

import (
	"testing"
)

// TestPenaltyFiguresLong has the studies that TestPenaltyFigures has not.
func TestPenaltyFiguresLong(t *testing.T) {
	penaltyFigures(t, map[string]penaltyFigure{
		"pbnn.fig2": {names: []string{penaltyFull.name, penaltyFive.name, penaltyNaive.name, penaltyTen.name},
			metrics: []string{"epistemic std"}},
		"pbnn.fig4": {names: []string{"SGLD, n = 5, eta = 1e-4", "SGLD, n = 5, eta = 1e-6", penaltyTempers.name,
			penaltyFive.name}, metrics: []string{"epistemic std"}},
	})
}

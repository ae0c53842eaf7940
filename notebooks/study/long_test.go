//go:build long

package study

import "testing"

// TestPenaltyFiguresLong has the studies that TestPenaltyFigures has not.
func TestPenaltyFiguresLong(t *testing.T) {
	penaltyFigures(t, map[string][]string{
		"pbnn.fig2": {penaltyFull.name, penaltyFive.name, penaltyNaive.name, penaltyTen.name},
		"pbnn.fig4": {"SGLD, n = 5, eta = 1e-4", "SGLD, n = 5, eta = 1e-6", penaltyTempers.name, penaltyFive.name},
	})
}

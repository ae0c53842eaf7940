//go:build long

package study

import "testing"

// TestPenaltyFiguresLong has the studies that TestPenaltyFigures has not.
func TestPenaltyFiguresLong(t *testing.T) {
	penaltyFigures(t, map[string]penaltyFigure{
		"pbnn.fig2": {names: []string{penaltyFull.name, penaltyFive.name, penaltyNaive.name, penaltyTen.name},
			metrics: []string{"epistemic std"}},
		"pbnn.fig4": {names: []string{"SGLD n = 5 eta = 0.0001", "SGLD n = 5 eta = 1e-06", penaltyTempers.name,
			penaltyFive.name}, metrics: []string{"epistemic std"}},
		"pbnn.acceptance": {datas: []string{"gapped_wave, n = 10"},
			names: []string{acceptanceTargets[0].name, acceptanceTargets[1].name}, metrics: []string{"sigma^2"}},
		"pbnn.eta": {names: []string{"penalty random walk", "penalty Langevin", "SGLD", "Langevin, all rows"},
			metrics: []string{"distance of means", "ratio of std"}},
	})
}

//go:build long

package study

import (
	"math"
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

// What an independent implementation found on Gal's splits 0 to 2: BNN-SGHMC's scores are as good as within its bands
// (its noise and prior are not known, and ours fit Boston closer: NLPD 2.26 where it has 2.36 ± .08); FBNN in paper
// mode samples the prior, whose true Phi and NLPD its draws have, and says so; the library's default does not, and
// says what of its chain is doubtful. Adult has 2000 of its rows.
func TestFBNNBandsLong(t *testing.T) {
	type band struct{ least, most float64 }
	lowest := math.Inf(-1)
	for _, c := range []struct {
		data    string
		regress bool
		bands   map[string]band
	}{
		{"boston", true, map[string]band{"NLPD": {lowest, 2.44}, "MSE": {0, 6.7}, "coverage of f": {.68, .92}}},
		{"wine", true, map[string]band{"NLPD": {lowest, 1.03}, "MSE": {0, .45}}},
		{"adult", false, map[string]band{"NLPD": {0, .354}, "accuracy": {.832, 1}}},
	} {
		t.Run(c.data, func(t *testing.T) {
			paper := []string{"FBNN (pCN-pCN)" + inPaper, "FBNN (SGHMC-pCN)" + inPaper}
			own := []string{"FBNN (pCN-pCN)" + byLibrary, "FBNN (SGHMC-pCN)" + byLibrary}
			o := Options{CacheDir: t.TempDir(), Data: []string{c.data}, Reps: 3,
				Methods: append(append([]string{priorRow, fbnnBaseline}, paper...), own...)}
			table := "fbnn.tableA2"
			if c.regress {
				table = "fbnn.tableA1"
			}
			cells, err := ran(t, table, o)
			if err != nil {
				t.Fatal(err)
			}
			of := map[string]map[string]float64{}
			for _, cell := range cells {
				if of[cell.Method] == nil {
					of[cell.Method] = map[string]float64{}
				}
				of[cell.Method][cell.Metric] = cell.Ours
			}
			for metric, b := range c.bands {
				if v := of[fbnnBaseline][metric]; !(v >= b.least && v <= b.most) {
					t.Errorf("BNN-SGHMC: %s is %.3f, want %v to %v", metric, v, b.least, b.most)
				}
			}
			prior := of[priorRow]
			for _, m := range paper {
				v := of[m]
				t.Logf("%s: Phi %.0f, the prior's %.0f; NLPD %.3f, the prior's %.3f", m, v["Phi"], prior["Phi"],
					v["NLPD"+ofNetwork], prior["NLPD"])
				if !(math.Abs(v["Phi"]-prior["Phi"]) <= .25*prior["Phi"]) {
					t.Errorf("%s: Phi is %.0f, want that of the prior, %.0f, within a quarter", m, v["Phi"], prior["Phi"])
				}
				if !(math.Abs(v["NLPD"+ofNetwork]-prior["NLPD"]) <= .1) {
					t.Errorf("%s: NLPD is %.3f, want that of the prior, %.3f, within .1", m, v["NLPD"+ofNetwork], prior["NLPD"])
				}
				if !(v["warnings"] >= 1) {
					t.Errorf("%s: nothing is said", m)
				}
			}
			for _, m := range own {
				if v := of[m]; !(v["Phi"] < .8*prior["Phi"]) || !(v["warnings"] >= 1) {
					t.Errorf("%s: Phi is %.0f, the prior's %.0f, with %v warnings", m, v["Phi"], prior["Phi"], v["warnings"])
				}
			}
		})
	}
}

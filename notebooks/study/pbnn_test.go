package study

import (
	"math"
	"strings"
	"testing"
)

// Every panel of the figures is run, by chains that are too short, and named; unknown methods are refused.
func TestPenaltyFigures(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	for id, want := range map[string][]string{
		"pbnn.fig1": {"with penalty", "without penalty"},
		"pbnn.fig2": {penaltyFull.name, penaltyFive.name, penaltyNaive.name, penaltyTen.name},
		"pbnn.fig4": {"SGLD n = 5 eta = 0.0001", "SGLD n = 5 eta = 1e-06", penaltyTempers.name, penaltyFive.name},
	} {
		s, err := Find(id)
		if err != nil {
			t.Fatal(err)
		}
		fig, cells, err := s.Draw(t.Context(), Options{Epochs: 4})
		if err != nil {
			t.Fatal(err)
		}
		svg, err := fig.SVG()
		if err != nil {
			t.Fatal(err)
		}
		if exact := strings.HasSuffix(id, "fig1"); len(cells) != 4*len(want) && !(exact && len(cells) == 4*len(want)+1) {
			t.Errorf("%s: %d cells", id, len(cells))
		}
		for i, name := range want {
			if !strings.Contains(string(svg), name) || cells[4*i].Method != name || cells[4*i].Study != id || !(cells[4*i].Ours > 0) || math.IsInf(cells[4*i].Ours, 0) {
				t.Errorf("%s: no panel %q, or %+v", id, name, cells[4*i])
			}
		}
		if _, _, err := s.Draw(t.Context(), Options{Methods: []string{"none"}}); err == nil {
			t.Errorf("%s: an unknown method is no error", id)
		}
	}
}

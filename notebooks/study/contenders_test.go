package study

import (
	"encoding/json"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
)

// The budget is the same for all: as many attempts, no two of them alike.
func TestContenders(t *testing.T) {
	all := contenders(100)
	for _, c := range all {
		if len(c.attempts) != len(all[0].attempts) {
			t.Errorf("%s has %d attempts, %s %d", c.name, len(c.attempts), all[0].name, len(all[0].attempts))
		}
		seen := map[string]bool{}
		for _, a := range c.attempts {
			text := must(json.Marshal(a))
			if seen[string(text)] {
				t.Errorf("%s has the attempt %s twice", c.name, text)
			}
			seen[string(text)] = true
		}
	}
}

// The attempt with the best validation is taken, and the test part has no say.
func TestBestByValidation(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: 1}, Stochastic: bayes.All()}
	parts := must(dataset.MustLoad("yacht").Split(table8Split, 0))
	b := newBench(model, 50, 2, func(string, ...any) {})
	slow, fast := attempt{Method: baseline.MAP{}, Rate: 1e-6}, attempt{Method: baseline.MAP{}, Rate: .05}
	nlpd := func(attempts ...attempt) float64 {
		p := must(b.best(t.Context(), contender{"MAP", attempts}, parts, 0))
		prediction := must(p.Predict(t.Context(), parts.Validation.X))
		score := must(metric.NLPD(prediction, parts.Validation.Y))
		return score.Value
	}
	bad, good := nlpd(slow), nlpd(fast)
	if bad <= good || nlpd(slow, fast) != good || nlpd(fast, slow) != good {
		t.Errorf("validation NLPD %v and %v alone, %v and %v of both: want the lower", bad, good, nlpd(slow, fast),
			nlpd(fast, slow))
	}
}

// A study asked for what it does not have names what it has, before it computes anything.
func TestUnknown(t *testing.T) {
	for id, c := range map[string]struct{ data, method string }{
		"ohsmc.table2": {"two_moons", "MC dropout"}, "ohsmc.table3": {"energy, yacht", "SWAG"},
		"ohsmc.fig1": {"crescent", "MC, OHSMC, VB, SGSMC"}, "ohsmc.fig3": {"sin_tanh", "SGSMC-HMC"},
		"gohsmc.table10": {"mnist", "Random Walk, Langevin"}, "pbnn.fig3": {"gapped_wave, mnist", "PBNN"},
		"pbnn.fig1": {"line", "with penalty"}, "pmcnet.evidence": {"tanh 2", "row"},
	} {
		s := must(Find(id))
		_, err := s.Run(t.Context(), Options{CacheDir: t.TempDir(), FigureDir: t.TempDir(), Data: []string{"jacht"}})
		if err == nil || !strings.Contains(err.Error(), `no data set "jacht"`) || !strings.Contains(err.Error(), c.data) {
			t.Errorf("%s: error %v, want one that names jacht and %q", id, err, c.data)
		}
		_, err = s.Run(t.Context(), Options{CacheDir: t.TempDir(), FigureDir: t.TempDir(), Methods: []string{"VBB"}})
		if err == nil || !strings.Contains(err.Error(), `no method "VBB"`) || !strings.Contains(err.Error(), c.method) {
			t.Errorf("%s: error %v, want one that names VBB and %q", id, err, c.method)
		}
	}
}

// whole passes on the lines of progress that are not of the steps of a fit, whose number depends on the time.
func whole(say func(line string)) func(line string) {
	return func(line string) {
		if !strings.Contains(line, ", step ") {
			say(line)
		}
	}
}

// TestFigures: each figure draws and is saved, with two epochs.
func TestFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("samples")
	}
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	for _, c := range []struct{ id, method string }{{"ohsmc.fig1", "OHSMC"}, {"ohsmc.fig1", "VB"}, {"ohsmc.fig1", "MC"},
		{"ohsmc.fig2", "VB"}, {"ohsmc.fig5", "OHSMC"}, {"ohsmc.fig2", "OHSMC"}, {"ohsmc.fig3", "SWAG"},
		{"ohsmc.fig4", "SWAG"}} {
		s := must(Find(c.id))
		fig, cells, err := s.Draw(t.Context(), Options{Epochs: 2, Methods: []string{c.method}})
		if err != nil {
			t.Fatal(err)
		}
		svg, err := fig.SVG()
		if err != nil || (c.id == "ohsmc.fig1") != (len(cells) == 2) {
			t.Errorf("%s: %d cells, %v", c.id, len(cells), err)
		}
		if c.id == "ohsmc.fig3" && !strings.Contains(string(svg), "test data") {
			t.Errorf("%s does not show the test rows", c.id)
		}
	}
}

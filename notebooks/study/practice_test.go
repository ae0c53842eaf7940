package study

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes/mcmc"
	"gobnn/notebooks/study/practice"
)

// Ranks of a table are means over its splits, and equal scores share theirs; a method without a posterior is last, and
// worse than ten networks. A method is worse on a split where the paired difference exceeds its standard error.
func TestPracticeRanks(t *testing.T) {
	of := func(data, method string, nlpd ...float64) *trial {
		one := &trial{Key: Key{Data: data, Method: method}}
		for _, v := range nlpd {
			one.results = append(one.results, Result{Values: map[string]float64{"NLPD": v},
				Series: map[string][]float64{"log density": {-v, -v - .1, -v + .1}}})
		}
		return one
	}
	done := []*trial{
		of("a", ownDefault, 1, 2), of("a", tenNetworks, 2, 1), of("a", "late", math.Inf(1), math.Inf(1)),
		of("b", ownDefault, 1), of("b", tenNetworks, 1), of("b", "late", 0),
	}
	for name, want := range map[string][2]float64{ownDefault: {1.5, 2.5}, tenNetworks: {1.5, 2.5}, "late": {3, 1}} {
		if got := practiceRanks(done)[name]; got[0] != want[0] || got[1] != want[1] {
			t.Errorf("ranks of %s are %v, want %v", name, got, want)
		}
	}
	for i, want := range [][2]int{{1, 2}, {0, 2}, {2, 2}, {0, 1}, {0, 1}, {0, 1}} {
		if worse, splits := worseThan(tenNetworks, done[i:i+1], done); worse != want[0] || splits != want[1] {
			t.Errorf("%s on %s: worse on %d of %d splits, want %v", done[i].Method, done[i].Data, worse, splits, want)
		}
	}
}

// All budgets of the default method are one curve, and all sizes of the ensemble: by themselves they would be more than
// can be told apart.
func TestSecondsFigure(t *testing.T) {
	var cells []Cell
	for i, m := range growing(30, 60, 120, 240, 480, 960, 1920, 3840) {
		cells = append(cells, Cell{Data: "airfoil", Method: m.name, Metric: oneNormalMetric, Ours: float64(-i)},
			Cell{Data: "airfoil", Method: m.name, Metric: "seconds", Ours: m.seconds})
	}
	for _, name := range []string{"catboost", "linear", "ngboost", "random_forest"} {
		cells = append(cells, Cell{Data: "airfoil", Method: name, Metric: "NLPD"},
			Cell{Data: "airfoil", Method: name, Metric: "seconds", Ours: 1})
	}
	if _, err := secondsFigure(cells); err != nil {
		t.Error(err)
	}
}

// A study of practice scores our methods, says which have no posterior in their time, and has the recorded scores of
// other packages beside them.
func TestPracticeScores(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute on the Go backend")
	}
	var said []string
	trials := practiceTrials(1, []practiceMethod{{"short", mcmc.Chains{}, 1e-3}, {tenNetworks, networks(2), 1e6}},
		func(t practice.Table) bool { return t.Name == "penguins" })
	e := Experiment{ID: "practice.test", trials: trials, cells: practiceCells("practice.test"), plot: ranksFigure}
	o := Options{CacheDir: t.TempDir(), FigureDir: t.TempDir(), Progress: func(line string) { said = append(said, line) }}
	cells, err := e.Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), ownDefault) {
		t.Errorf("a figure of ranks without the default: %v", err)
	}
	found := map[string]float64{}
	for _, c := range cells {
		if c.Data != allTables || c.Metric == rankMetric {
			found[c.Method+" "+c.Metric] = c.Ours
		}
	}
	if !math.IsInf(found["short NLPD"], 1) || found["short "+rankMetric] != 6 {
		t.Errorf("a method that cannot end in a millisecond has the NLPD %v and the rank %v of 6", found["short NLPD"],
			found["short "+rankMetric])
	}
	for _, c := range []struct {
		what        string
		least, most float64
	}{
		{tenNetworks + " NLPD", -.5, 1.5}, {tenNetworks + " NLL of one normal", -.5, 1.5}, {"linear RMSE", .1, .6},
		{tenNetworks + " coverage 90 %", .6, 1}, {"catboost CRPS", .1, .4},
	} {
		if v, ok := found[c.what]; !ok || v < c.least || v > c.most {
			t.Errorf("%s is %v (%v), want from %v to %v", c.what, v, ok, c.least, c.most)
		}
	}
	if !strings.Contains(strings.Join(said, "\n"), "penguins, short: ") {
		t.Errorf("said %q", said)
	}
}

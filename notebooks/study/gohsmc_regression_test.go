package study

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gobnn/ohsmc"
	"gobnn/viz"
)

// tiny puts a small data set in the place of the paper's two, on the Go backend.
func tiny(t *testing.T) {
	t.Helper()
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	before := regressions
	regressions = []regressionData{{data: "yacht", batches: []int{50, 100}, width: 4, rate: .01}}
	t.Cleanup(func() { regressions = before })
}

// The paper's methods have its settings alone, all others as many attempts, within a name no two alike and the first
// the paper's.
func TestRegressionContenders(t *testing.T) {
	var names []string
	for _, c := range regressionContenders(regressions[0], 1) {
		names = append(names, c.name)
	}
	for _, s := range regressions {
		all := regressionContenders(s, 100)
		for k, c := range all {
			if want := 1 + min(1, k/paperRegressionMethods); len(c.attempts) != want {
				t.Errorf("%s has %d attempts, want %d", c.name, len(c.attempts), want)
			}
			if own := slices.Index(names, tuned+c.name); own >= 0 && !reflect.DeepEqual(all[own].attempts[:1], c.attempts) {
				t.Errorf("%s: %+v, and tuned %+v", c.name, c.attempts, all[own].attempts)
			}
			for i, a := range c.attempts {
				if i > 0 && reflect.DeepEqual(a, c.attempts[0]) {
					t.Errorf("%s: two attempts are alike: %+v", c.name, a)
				}
				if g, ok := a.Method.(ohsmc.Guided); ok && (i == 0 && g.AllRows || a.Particles != 100) {
					t.Errorf("%s: %+v with %d particles, want 100, in the paper's attempt weighed by the batch alone",
						c.name, g, a.Particles)
				}
				if _, own := a.Method.(ohsmc.Guided); own == a.Whole {
					t.Errorf("%s: whole network %t, want it of the paper's rivals and of them only", c.name, a.Whole)
				}
			}
		}
	}
}

// The first layers have as many numbers as the paper says.
func TestRegressionModel(t *testing.T) {
	want := map[string]int{"wine_red": 240, "california": 450}
	for _, s := range regressions {
		data := must(load(s.data))
		bound := must(s.model().Bind(data.Dims(), data.Outputs()))
		if bound.D != want[s.data] {
			t.Errorf("%s: %d stochastic numbers, want %d", s.data, bound.D, want[s.data])
		}
	}
}

// A regression's loss is in the target's units, and its seconds are of the fit.
func TestRegressionScores(t *testing.T) {
	tiny(t)
	cells := must(ran(t, "gohsmc.table1", Options{CacheDir: t.TempDir(), Methods: []string{"Langevin", "SGHMC", "VI"},
		Reps: 2, Epochs: 2}))
	for _, c := range cells {
		// The target's variance is 229: a fit of one epoch is no better than a few times that, and no worse than a
		// thousandth.
		if c.Metric == "test loss" && (c.Reps != 2 || c.Study != "gohsmc.table1" || !(c.Ours > .2 && c.Ours < 2000)) ||
			c.Metric == "seconds" && !(c.Ours > 0 && c.Ours <= c.Seconds/2+1e-9) {
			t.Errorf("%+v, want two repetitions in the target's units", c)
		}
	}
	if len(cells) != 2*(3+2+2) { // all have an NLPD and a loss, and Langevin's weights an ESS
		t.Errorf("%d cells", len(cells))
	}
}

func TestMeanCurve(t *testing.T) {
	result := func(at, loss []float64) Result {
		return Result{Series: map[string][]float64{"seconds": at, "loss": loss}}
	}
	s := meanCurve([]Result{result([]float64{1, 2, 3}, []float64{8, 6, 4}),
		result([]float64{1, 2.5, 4}, []float64{2, 1, 0})}, "seconds", "loss")
	if s.Step[0] != 1 || s.Step[curvePoints-1] != 3 || s.Value[0] != 5 ||
		math.Abs(s.Value[curvePoints-1]-7./3) > 1e-9 { // 4, and 2/3 on the line from (2.5, 1) to (4, 0)
		t.Errorf("from (%v, %v) to (%v, %v), want (1, 5) to (3, 7/3)", s.Step[0], s.Value[0], s.Step[curvePoints-1],
			s.Value[curvePoints-1])
	}
	s = meanCurve([]Result{result([]float64{1, 2}, []float64{8, 6}),
		result([]float64{1, 2}, []float64{8, 6})}, "seconds", "loss")
	want := viz.Trace{Series: viz.Series{Step: []float64{1, 2}, Value: []float64{8, 6}}, Lower: []float64{8, 6},
		Upper: []float64{8, 6}}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("validated at the same times: %+v, want %+v", s, want)
	}
	if got := meanCurve([]Result{{}}, "seconds", "loss"); len(got.Value) != 0 {
		t.Errorf("%v of no validations", got)
	}
}

// Of five values one or two may be anything.
func TestRunningMedian(t *testing.T) {
	want := []float64{3, 3, 3, 2, 2, 2}
	if got := runningMedian([]float64{3, 2, 90, 80, 1, 2}, 5); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A method has one colour in all panels and figures, whichever others are drawn beside it.
func TestOneColourAMethod(t *testing.T) {
	run := func(data, method string) *trial {
		return &trial{Key: Key{Data: data, Method: method}, results: []Result{{
			Series: map[string][]float64{"epoch": {1, 2, 3}, "loss": {3, 2, 1}}}}}
	}
	const data, green = "wine_red, batch 20", "#009E73" // the third colour
	for _, others := range []bool{false, true} {
		runs := []*trial{run(data, "NUTS"), run(data, "VI"), run(data, "Random Walk")}
		if !others {
			runs = []*trial{run(data, "NUTS"), run(data, "exact Langevin")}
		}
		svg := must(must(lossPanels(t.Context(), Options{}, runs)).SVG())
		if strings.Contains(string(svg), green) == others {
			t.Errorf("the colour of exact Langevin is there: %v", others)
		}
	}
	for _, c := range regressionContenders(regressions[0], 1) {
		if !strings.HasPrefix(c.name, tuned) && !slices.Contains(regressionStyles, c.name) {
			t.Errorf("%s has no colour of its own", c.name)
		}
	}
}

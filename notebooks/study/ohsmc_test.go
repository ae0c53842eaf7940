package study

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/dataset/mnist"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/train"
	"gobnn/ohsmc"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Tables 1 and 2 have the paper's metrics, its numbers beside ours, and what is kept is not computed again.
func TestSyntheticTables(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	for s, metrics := range map[*synthetic]int{&sinTanh: 3, &twoMoons: 5} {
		said := 0
		o := Options{CacheDir: t.TempDir(), Methods: []string{"SWAG", "MAP"}, Reps: 2, Epochs: 1,
			Progress: whole(func(string) { said++ })}
		cells := must(ran(t, s.study, o))
		beside := 0
		for _, c := range cells {
			if c.Study != s.study || c.Reps != 2 || math.IsNaN(c.Ours) {
				t.Errorf("%+v", c)
			}
			if c.Paper != nil {
				beside++
				want := reportedIn(s.study, s.data)["SWAG"][c.Metric]
				if c.Method != "SWAG" || *c.Paper != want.Value || *c.PaperSE != want.SE {
					t.Errorf("%+v, want the paper's %+v", c, want)
				}
			}
		}
		if len(cells) != 2*metrics || beside != len(reportedIn(s.study, s.data)["SWAG"]) || said != 4 {
			t.Errorf("%s: %d cells, %d with the paper's number, %d lines of progress", s.study, len(cells), beside, said)
		}
		if again, err := ran(t, s.study, o); err != nil || said != 4 || again[0].Ours != cells[0].Ours {
			t.Errorf("%s: %d lines of progress in all, %v: the repetitions should be kept", s.study, said, err)
		}
	}
}

// A small Table 4 has the paper's methods, in its order, each with its metrics and the paper's numbers beside ours, and
// what is kept is not computed again.
func TestTable4(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	model := table4Model
	model.Network = nn.CNN{Height: mnist.Side, Width: mnist.Side, Hidden: []int{4},
		Convolutions: []nn.Conv{{Filters: 2, Pool: 2}, {Filters: 3, Pool: 2}}}
	size := table4Size{model: model, batch: 10, particles: []int{3, 2}, draws: 2, collect: 2,
		pictureSize: pictureSize{20, 10, 20, extent{reps: 2, epochs: 1}}}
	small := Experiment{ID: "ohsmc.table4", trials: func(o Options) ([]*trial, error) { return size.trials(o), nil }}
	said := 0
	o := Options{CacheDir: t.TempDir(), Reps: 1, Progress: whole(func(string) { said++ })}
	cells := must(small.Run(t.Context(), o))
	var methods []string
	for _, c := range cells {
		methods = append(methods, c.Method)
		if c.Study != "ohsmc.table4" || c.Data != "mnist" || c.Reps != 1 || math.IsNaN(c.Ours) {
			t.Errorf("%+v", c)
		}
		paper := reportedIn("ohsmc.table4", "mnist")
		method, _, _ := strings.Cut(c.Method, ",")
		if want, reported := paper[method][c.Metric]; reported != (c.Paper != nil) || reported && *c.Paper != want.Value {
			t.Errorf("%+v, want the paper's: %v", c, want)
		}
	}
	if methods = slices.Compact(methods); !slices.Equal(methods, []string{"OHSMC, J = 3", "OHSMC, J = 2", "SWAG", "VB"}) {
		t.Errorf("methods %q", methods)
	}
	before := said
	again, err := small.Run(t.Context(), o)
	if err != nil || said != before || len(again) != len(cells) || again[0].Ours != cells[0].Ours {
		t.Errorf("%d more lines of progress, %v: the repetitions should be kept", said-before, err)
	}
}

// By default the synthetic studies run the paper's methods, in its order, each with the paper's settings alone, and
// validate after each batch.
func TestPaperContenders(t *testing.T) {
	for _, full := range []bool{false, true} {
		all := must(sinTanh.trials(Options{Full: full}))
		var got []string
		for _, c := range all {
			if c.extraMethod {
				continue
			}
			got = append(got, c.Method)
			attempts := c.Settings.(map[string]any)["attempts"].([]attempt)
			if len(attempts) != 1 || attempts[0].Rate != .01 {
				t.Errorf("%s: %+v, want the paper's settings alone", c.Method, attempts)
			}
			if a, ok := attempts[0].Method.(ohsmc.SMC); ok && (a.Moves == 10) != full {
				t.Errorf("SGSMC has %d moves, in full: %t", a.Moves, full)
			}
		}
		want := []string{"MAP-HMC", "OHSMC", "SGSMC-HMC", "SWAG", "VB", "SWAG, authors' program"}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	b := sinTanh.bench(Options{Epochs: 2})
	parts := must(sinTanh.parts(0))
	f := must(b.train(t.Context(), attempt{Method: baseline.MAP{}, Rate: .01}, parts, 0, "", nil))
	if n := len(f.curve); n != 10 || f.epochs != 2 || f.curve[9].epoch != 2 {
		t.Errorf("%d validations in %v epochs, want one after each of five batches in each of two", n, f.epochs)
	}
}

// SWAG by the authors' program has psi of the best checkpoint, and phi of the epochs after it. A posterior of as many
// particles as are kept for the figures predicts from them what it predicted.
func TestPublishedSWAG(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	parts := must(sinTanh.parts(0))
	fitted := func(m fit.Method) *bayes.Posterior {
		c := contender{"a", []attempt{{Method: m, Rate: .01}}}
		return must(sinTanh.bench(Options{Epochs: 3}).best(t.Context(), c, parts, 0))
	}
	best, p := fitted(baseline.MAP{}), fitted(publishedSWAG{Collect: 4, Rank: 2, Samples: drawnParticles})
	of, at := thinned(p), thinned(best)
	if !slices.Equal(of["psi"], at["psi"]) || slices.Contains(of["phi"], at["phi"][0]) {
		t.Errorf("psi %v, want %v of MAP; phi begins with %v, MAP's with %v", of["psi"][:3], at["psi"][:3], of["phi"][:3],
			at["phi"][:3])
	}
	was := must(must(p.Predict(t.Context(), parts.Test.X)).Mean())
	now := must(must(sinTanh.restored(Result{Series: of}, parts.Train).Predict(t.Context(), parts.Test.X)).Mean())
	if !floats.EqualApprox(was, now, 1e-5) || stat.StdDev(was, nil) < .01 {
		t.Errorf("predicts %v, and %v from what is kept", was[:3], now[:3])
	}
}

// What is kept of two repetitions pools to what all of their rows give.
func TestPooled(t *testing.T) {
	var p pooled
	for _, r := range []Result{
		{Series: map[string][]float64{"rows": {30}, "level": {.5}, "coverage": {.4}}},
		{Series: map[string][]float64{"rows": {10}, "level": {.5}, "coverage": {.8}}},
		{Values: map[string]float64{"NLPD": math.Inf(1)}}, // every attempt diverged
	} {
		failOn(p.add(r))
	}
	if p.rows != 40 || math.Abs(p.coverage[0]-.5) > 1e-12 || p.gap() > 1e-12 { // (30 x .4 + 10 x .8) / 40
		t.Errorf("pooled %+v, want a coverage of .5 of 40 rows", p)
	}
	if err := p.add(Result{Series: map[string][]float64{"rows": {1}, "level": {.6}, "coverage": {.6}}}); err == nil ||
		!strings.Contains(err.Error(), "0.6") {
		t.Errorf("error %v for other levels", err)
	}
}

// The maximum of the paper's lower bound is known: with m the mean of y and u = psi^2, -(1/u + (m - 1 - u/2)^2)/2 for
// each datum has its maximum where 1/u^2 = u/2 + 1 - m, that is at psi = 1 where m = 1/2.
func TestBruteForce(t *testing.T) {
	data := must(dataset.Crescent(100, 1, 0))
	mean := 0.
	for _, y := range data.Y {
		mean += y / 100
	}
	for i := range data.Y {
		data.Y[i] += .5 - mean
	}
	psi, err := bruteForce(t.Context(), dataset.Parts{Train: data}, crescentRun{Training: particles.Training{
		Epochs: 1500, BatchSize: 100, Optimiser: train.Adam{Schedule: train.Exponential(.1, .97, 10)},
	}})
	if err != nil || len(psi) != 1500 || math.Abs(psi[1499]-1) > .02 {
		t.Errorf("psi %v after %d epochs, %v; want 1", psi[len(psi)-1], len(psi), err)
	}
}

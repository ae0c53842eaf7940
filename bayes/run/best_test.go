package run_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
)

// Selection on the host and KeepBest on the device choose the same validations, of each member by itself: a tie and a
// NaN are no improvement, and a member that patience has ended keeps its best.
func TestKeepBest(t *testing.T) {
	nan := math.NaN()
	scores := [][]float64{ // [step][member]
		{3, nan, 5, 1}, {2, nan, 5, 2}, {2, 7, 6, 3}, {1.5, 6, 4, 0}, {1, math.Inf(1), 3, 0},
	}
	want := []run.Best{{Step: 5, NLPD: 1}, {NLPD: nan}, {Step: 1, NLPD: 5}, {Step: 1, NLPD: 1}} // patience 2
	const members = 4
	engine := computetest.Go(t)
	state := compute.NewState(engine)
	defer state.Close()
	state.Set("theta", compute.Floats(compute.Float64, make([]float64, 2*members), members, 2))
	if err := run.BeginBest(state, []string{"theta"}, members); err != nil {
		t.Fatal(err)
	}
	best := run.BestEntries("theta")
	program := computetest.Must(compute.NewProgram(engine, "validation", append(best, "theta"), best,
		func(s compute.Nodes, inputs []*graph.Node) (compute.Nodes, *graph.Node) {
			return run.KeepBest(s, inputs[0], inputs[1], "theta"), graph.ConstAs(inputs[0], []float64{0})
		}))
	defer program.Close()
	selection := run.NewSelection(members, 2)
	for i, now := range scores {
		theta := make([]float64, 2*members)
		for k := range theta {
			theta[k] = float64(i + 1)
		}
		state.Set("theta", compute.Floats(compute.Float64, theta, members, 2))
		if _, err := program.Run(state, now, selection.Open()); err != nil {
			t.Fatal(err)
		}
		selection.Add(i+1, now)
	}
	kept := computetest.Must(state.Host(best...))
	theta := computetest.Must(compute.Float64s(kept[run.BestPrefix+"theta"]))
	lowest := computetest.Must(compute.Float64s(kept[run.BestPrefix+"nlpd"]))
	for m, w := range want {
		got, score := selection.Best[m], w.NLPD
		if w.Step == 0 {
			score = math.Inf(1)
		}
		if got.Step != w.Step || got.NLPD != w.NLPD && w.Step > 0 || lowest[m] != score ||
			!slices.Equal(theta[2*m:2*m+2], []float64{float64(w.Step), float64(w.Step)}) {
			t.Errorf("member %d: best %+v on the host, score %v of step %v on the device; want %+v", m, got, lowest[m],
				theta[2*m:2*m+2], w)
		}
	}
	if open := selection.Open(); !slices.Equal(open, []float64{1, 0, 0, 0}) {
		t.Errorf("still trained: %v", open)
	}
}

// A training is too short if its scores still fall at its end, to the lowest of all: not if they came to rest, rose
// again, or only scatter. If they are best at the beginning and far worse at the end, the cure is smaller steps.
func TestEnding(t *testing.T) {
	of := func(n int, score func(at float64) float64) []float64 {
		scores := make([]float64, n)
		for i := range scores {
			scores[i] = score(float64(i) / float64(n-1))
		}
		return scores
	}
	rng := rand.New(rand.NewPCG(1, 1))
	noise := func(float64) float64 { return 1 + .3*rng.NormFloat64() }
	astray := func(best, end float64) func(float64) float64 { // the best is the fifth of 200
		return func(at float64) float64 {
			switch step := math.Round(199 * at); {
			case step <= 4:
				return best + 4 - step
			default:
				return best + (end-best)*min(1, .01*(step-4))
			}
		}
	}
	peak := func(dip, top float64) func(float64) float64 { // falls from 3 to 1.35 at dip, rises to 40 at top, then falls
		return func(at float64) float64 {
			switch {
			case at <= dip:
				return 3 - 1.65*at/dip
			case at <= top:
				return 1.35 + 38.65*(at-dip)/(top-dip)
			default:
				return 40 - 18*(at-top)/(1-top)
			}
		}
	}
	for name, c := range map[string]struct {
		scores []float64
		says   string
	}{
		"falls":               {of(100, func(at float64) float64 { return 4 - at }), "by 0.25 nats"},
		"falls, and scatters": {of(200, func(at float64) float64 { return noise(at) - 2*at }), "of its 800 steps"},
		"came to rest":        {of(200, func(at float64) float64 { return 1 + 3*math.Exp(-20*at) }), ""},
		"falls by little":     {of(200, func(at float64) float64 { return 1 - .05*at }), ""},
		"rises again":         {of(200, func(at float64) float64 { return 1 + math.Abs(at-.5) }), ""},
		"rises at once":       {of(200, astray(1.35, 19)), "number 5 is the best, and"},
		"rises at once, by +": {of(200, astray(1.35, math.Inf(1))), "by +Inf nats"},
		"fits the noise":      {of(200, peak(.06, 1)), ""},
		"rises by half a nat": {of(200, astray(1.35, 1.8)), ""},
		"rises, then falls":   {of(200, peak(.02, .5)), "take smaller steps"},
		"falls from a peak":   {of(200, peak(.3, .7)), ""},
		"falls below the dip": {of(200, func(at float64) float64 { return peak(.02, .5)(at) - 60*max(0, at-.6) }), "Epochs"},
		"rose, came back":     {of(200, func(at float64) float64 { return peak(.02, .5)(at) - 20.2*max(0, at-.6)/.4 }), ""},
		"few":                 {of(15, func(at float64) float64 { return 4 - at }), ""},
		"none":                {nil, ""},
		"not finite":          {of(100, func(at float64) float64 { return math.Inf(1) }), ""},
		"no number":           {of(100, func(at float64) float64 { return math.NaN() }), ""},
	} {
		got := run.Ending(c.scores, 800, 200)
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
	// By noise alone Student's t with some 24 degrees of freedom is above 3 in 3 of 1000 runs.
	alarms := 0
	for range 2000 {
		if run.Ending(of(50, noise), 800, 200) != "" {
			alarms++
		}
	}
	if alarms > 20 {
		t.Errorf("%d of 2000 trainings whose scores only scatter are called too short", alarms)
	}
}

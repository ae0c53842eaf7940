package run_test

import (
	"math"
	"slices"
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
	computetest.NoError(t, run.BeginBest(state, []string{"theta"}, members))
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

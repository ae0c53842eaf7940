package run

import (
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Best is the best validation of a member so far; Step 0 before the first.
type Best struct {
	Step int // counted from 1
	NLPD float64
}

// Selection is early stopping: the best validation of each member of a run, such as a network of an ensemble, and which
// members are still trained. KeepBest keeps their state on the device by the same comparison.
type Selection struct {
	Best     []Best // of each member, NaN before the first validation
	patience int
	since    []int // validations since the best, of each member
}

// NewSelection is a Selection in which a member's training ends after patience validations without a better one; 0:
// never.
func NewSelection(members, patience int) Selection {
	return Selection{
		Best: slices.Repeat([]Best{{NLPD: math.NaN()}}, members), patience: patience, since: make([]int, members),
	}
}

// Open is 1 for each member that is still trained, 0 for the others; nil if none is.
func (s Selection) Open() []float64 {
	open := make([]float64, len(s.Best))
	for m, since := range s.since {
		if s.patience == 0 || since < s.patience {
			open[m] = 1
		}
	}
	if !slices.Contains(open, 1) {
		return nil
	}
	return open
}

// Least is the fewest validations after which a member's training may end.
func (s Selection) Least() int {
	if s.patience == 0 {
		return math.MaxInt
	}
	return max(1, s.patience-slices.Max(s.since))
}

// Add records the members' scores after a step; lower scores are better.
func (s Selection) Add(step int, scores []float64) {
	open := s.Open()
	for m, score := range scores {
		before := s.Best[m].NLPD
		if s.Best[m].Step == 0 {
			before = math.Inf(1)
		}
		if open != nil && open[m] != 0 && score < before {
			s.Best[m], s.since[m] = Best{step, score}, 0
		} else {
			s.since[m]++
		}
	}
}

// BestPrefix begins the names of the entries of a state that keep other entries as they were at the best validation.
const BestPrefix = "best_"

// bestEntry is the name of the state's entry that holds the lowest scores so far, float64: a scalar, or [J] for J
// members.
const bestEntry = BestPrefix + "nlpd"

// BestEntries returns the names of the entries that KeepBest updates for entries with the given names.
func BestEntries(names ...string) []string {
	all := []string{bestEntry}
	for _, name := range names {
		all = append(all, BestPrefix+name)
	}
	return all
}

// BeginBest makes the named entries of a state the best so far, with scores of +Inf of the given dimensions: none for a
// scalar.
func BeginBest(state *compute.State, names []string, dims ...int) error {
	now, err := state.Host(names...)
	if err != nil {
		return fmt.Errorf("the state before the first validation: %w", err)
	}
	for name, t := range now {
		state.Set(BestPrefix+name, t)
	}
	members := 1
	for _, d := range dims {
		members *= d
	}
	worst := slices.Repeat([]float64{math.Inf(1)}, members)
	state.Set(bestEntry, tensors.FromFlatDataAndDimensions(worst, dims...))
	return nil
}

// KeepBest copies the named entries to their BestEntries where the score, float64, is lower than the best. The score is
// a scalar for whole entries, or [J] for entries whose first axis has J members. open has the score's shape and is 0
// for members that are no longer trained; nil if all still are.
func KeepBest(s compute.Nodes, score, open *graph.Node, names ...string) compute.Nodes {
	better := graph.LessThan(score, s[bestEntry])
	if open != nil {
		better = graph.And(better, graph.GreaterThan(open, graph.ZerosLike(open)))
	}
	kept := compute.Nodes{bestEntry: graph.Where(better, score, s[bestEntry])}
	for _, name := range names {
		all := better
		for all.Rank() < s[name].Rank() && !score.IsScalar() {
			all = graph.ExpandAxes(all, -1)
		}
		all = graph.BroadcastToDims(all, s[name].Shape().Dimensions...)
		kept[BestPrefix+name] = graph.Where(all, s[name], s[BestPrefix+name])
	}
	return kept
}

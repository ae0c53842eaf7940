package run

import (
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
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

// A training ended too early if its best validation is in the last quarter and its scores, NLPD in nats a row, still
// fell. They fell if the mean of the last quarter is below the mean of the third by more than fallen, and by more than
// fallenErrors standard errors. A training went astray if its best validation is in the first fiftieth, and all scores
// of the last quarter are worse by more than risen: one that is at its best later has learnt, and then fits the noise,
// which its best state does not. Neither is judged from fewer than fewestScores validations.
const (
	fallen       = .02
	fallenErrors = 3
	risen        = 1
	fewestScores = 16
)

// Ending returns a warning if a training ended while its validation scores still fell, or if it soon left its best
// score for far worse ones; otherwise it is empty. Scores that fall again after they have risen from the best do not
// count as falling: more steps are not the cure. The scores of all validations come in order; steps and epochs are the
// totals.
func Ending(scores []float64, steps, epochs int) string {
	n := len(scores)
	if n < fewestScores {
		return ""
	}
	third, last := scores[n/2:3*n/4], scores[3*n/4:]
	best, least := lowest(scores)
	if best >= 0 && best <= n/50 {
		if _, then := lowest(last); then > least+risen {
			return fmt.Sprintf("the training went astray: of its %d validations number %d is the best, and those of the last "+
				"quarter are all worse, by %.2g nats a row or more, so that the posterior is hardly trained; take smaller "+
				"steps (a lower learning rate, shorter moves of the particles)", n, best+1, then-least)
		}
	}
	if best < 3*n/4 {
		return ""
	}
	before, beforeVariance := stat.MeanVariance(third, nil)
	after, afterVariance := stat.MeanVariance(last, nil)
	by := before - after
	stdErr := math.Sqrt(beforeVariance/float64(len(third)) + afterVariance/float64(len(last)))
	if !(by > fallen && by > fallenErrors*stdErr) || math.IsInf(by, 1) {
		return ""
	}
	return fmt.Sprintf("the training ended too early: its validation NLPD still fell, on average by %.2g nats a row from "+
		"the third to the last quarter of its %d steps; take more than %d Epochs", by, steps, epochs)
}

// lowest is the first of the lowest scores and its index, which is -1 if none is below +Inf.
func lowest(scores []float64) (at int, least float64) {
	at, least = -1, math.Inf(1)
	for i, v := range scores {
		if v < least {
			at, least = i, v
		}
	}
	return at, least
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

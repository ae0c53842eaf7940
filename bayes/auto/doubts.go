package auto

import (
	"fmt"
	"slices"
	"strings"

	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
)

// more is the cure of whatever the budget has cut.
const more = "take more seconds"

// doubtsOf are doubts about what the budget has cut, what each fold has met, and the intervals, if so many rows left
// out judge them, of whose targets they have covered such a share.
func (m Method) doubtsOf(all []*fold, d *Details, covered float64, rows int) fit.Doubts {
	folds := make([]fit.Doubts, len(all))
	for f, one := range all {
		folds[f].If(one.cut != "", "cut", "the budget of %v s ended the training in %s: %s", m.Seconds, one.cut, more)
		folds[f] = append(folds[f], one.doubts...)
	}
	doubts := append(joined(folds, d.Folds), d.doubts...)
	if rows > 0 {
		doubts = append(doubts, fit.CoverageDoubts(covered, rows, more+", or another likelihood")...)
	}
	return doubts
}

// joined are the doubts of the folds so far, of so many, each with the folds that it is of. Those of one kind are one,
// with the numbers of the first.
func joined(folds []fit.Doubts, many int) (all fit.Doubts) {
	var of [][]string
	for f, doubts := range folds {
		for _, d := range doubts {
			if d.Kind == fit.EndedEarly { // its Epochs are not the user's
				d.Cure = more
			}
			i := slices.IndexFunc(all, func(other fit.Doubt) bool { return other.Kind == d.Kind })
			if i < 0 {
				i, all, of = len(all), append(all, d), append(of, nil)
			}
			if name := fmt.Sprint(f + 1); !slices.Contains(of[i], name) {
				of[i] = append(of[i], name)
			}
		}
	}
	for i := range all {
		if many > 1 {
			all[i].Text = fmt.Sprintf("fold %s: %s", strings.Join(of[i], ", "), all[i].Text)
		}
	}
	return all
}

// undone is a warning if of more than a hundredth of the moves the chains went back, since the log-density was not
// finite.
func undone(made *mcmc.Details) (all fit.Doubts) {
	nonFinite, moves := 0, 0
	for _, chain := range made.Stats {
		nonFinite, moves = nonFinite+chain.NonFinite, moves+chain.Transitions
	}
	all.If(100*nonFinite > moves, "undone", "in %d of %d moves of the chains the log-density or its gradient was not "+
		"finite, and the chain went back: look in the data for what has no finite log-density", nonFinite, moves)
	return all
}

package ascent

import (
	"math"

	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
)

// selection tracks each member's best validation, and which members early stopping has ended.
type selection struct {
	patience  int // validations without a better one that end a member's training; 0: none do
	best      []Best
	sinceBest []int // validations since the best, of each member
}

func newSelection(members, patience int) selection {
	s := selection{patience: patience, best: make([]Best, members), sinceBest: make([]int, members)}
	for m := range s.best {
		s.best[m].NLPD = math.NaN()
	}
	return s
}

// open is 1 for each member that is still trained, 0 for the others; nil if none is.
func (s selection) open() []float64 {
	open, any := make([]float64, len(s.best)), false
	for m, since := range s.sinceBest {
		if s.patience == 0 || since < s.patience {
			open[m], any = 1, true
		}
	}
	if !any {
		return nil
	}
	return open
}

// enter records a validation; better says for which members it is the best.
func (s selection) enter(v Validation, better func(member int) bool) {
	for m, nlpd := range v.NLPD {
		if better(m) {
			s.best[m], s.sinceBest[m] = Best{v.Step, nlpd}, 0
		} else {
			s.sinceBest[m]++
		}
	}
}

// again records a validation of an earlier session, with the comparison that the device made.
func (s selection) again(v Validation) {
	open := s.open()
	s.enter(v, func(m int) bool {
		before := s.best[m].NLPD
		if s.best[m].Step == 0 {
			before = math.Inf(1)
		}
		return open != nil && open[m] != 0 && v.NLPD[m] < before
	})
}

// keepBest keeps theta in "best_theta" for the members, [J], that are open and whose score is lower than "best_nlpd";
// better is 1 for each of them.
func keepBest(s compute.Nodes, score, open *graph.Node) (updated compute.Nodes, better *graph.Node) {
	kept := graph.And(graph.LessThan(score, s["best_nlpd"]), graph.GreaterThan(open, graph.ZerosLike(open)))
	all := graph.BroadcastToDims(graph.ExpandAxes(kept, 1), s["theta"].Shape().Dimensions...)
	return compute.Nodes{
		"best_nlpd":  graph.Where(kept, score, s["best_nlpd"]),
		"best_theta": graph.Where(all, s["theta"], s["best_theta"]),
	}, graph.ConvertDType(kept, compute.Float64)
}

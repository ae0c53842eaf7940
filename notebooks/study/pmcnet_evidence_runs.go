package study

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// This file combines the runs of a row of the evidence benchmark, and chooses the split of the next run.

// mostEvidenceRuns is the largest number of whole runs of a row. After these the row keeps the standard error that it
// has.
const mostEvidenceRuns = 30

// smallShare is the share of the mean of Z below which a split has no whole run, even if what is known of it is three
// standard errors too low.
const smallShare = .02

// evidenceRuns holds the runs of a row on each split: a quick run, and the whole runs that replace it.
type evidenceRuns struct {
	quick [evidenceSplits]Result
	whole [evidenceSplits][]Result
}

// evidenceKind is which of the runs.
type evidenceKind string

const (
	quickRun evidenceKind = "quick run"
	wholeRun evidenceKind = "whole run"
)

// within is the standard error of SMC at which a row has enough whole runs.
func (r evidenceRow) within() float64 {
	if r.learnt {
		return .6
	}
	return .15
}

// next chooses the split of the next whole run. First come the splits without one that may have more than a small share
// of the mean, the largest first. Then, while the standard error is too large, the next run is where it lowers the
// error most. more is false at the end: se is 0 if the error is small enough, or the error that is left after too many
// runs.
func (runs *evidenceRuns) next(within float64) (split int, se float64, more bool) {
	count, missing := 0, runs.shares()
	for k := range missing {
		if count += len(runs.whole[k]); len(runs.whole[k]) > 0 {
			missing[k] = math.Inf(-1)
		}
	}
	if k := floats.MaxIdx(missing[:]); missing[k] >= math.Log(smallShare) {
		return k, math.NaN(), true
	}
	switch e, gain := runs.of(byTempering); {
	case e.se <= within:
		return 0, 0, false
	case count < mostEvidenceRuns:
		return floats.MaxIdx(gain[:]), e.se, true
	default:
		return 0, e.se, false
	}
}

// shares returns the log of the share of the mean of Z that each split may have: the smaller of the estimates by its
// quick run and by its whole runs, each plus three standard errors.
func (runs *evidenceRuns) shares() (most [evidenceSplits]float64) {
	known := runs.splits(byTempering)
	mean := meanEvidence(known).value + math.Log(evidenceSplits)
	for k, e := range known {
		quick := estimateOf(runs.quick[k], byTempering)
		if most[k] = min(e.value+3*e.se, quick.value+3*quick.se) - mean; math.IsNaN(most[k]) {
			most[k] = math.Inf(1) // it may be any
		}
	}
	return most
}

// estimate is a log evidence, of a split or of the mean over them, with its standard error.
type estimate struct{ value, se float64 }

func estimateOf(r Result, method string) estimate {
	return estimate{r.Values[method], r.Values[method+" error"]}
}

// of returns an estimator's log of the mean over splits of the mean of Z over a split's runs. The standard error
// follows by the delta method from the runs' own. gain is the decrease of the variance by another run on each split. A
// split without a whole run takes SMC's quick run.
func (runs *evidenceRuns) of(method string) (e estimate, gain [evidenceSplits]float64) {
	splits := runs.splits(method)
	e = meanEvidence(splits)
	for k := range splits {
		gain[k] = part(splits[k], e) / float64(len(runs.whole[k])+1)
	}
	return e, gain
}

// splits returns an estimator's log Z of each split; without a whole run it is the quick run's, by SMC.
func (runs *evidenceRuns) splits(method string) (splits []estimate) {
	for k, some := range runs.whole {
		if len(some) == 0 {
			splits = append(splits, estimateOf(runs.quick[k], byTempering))
			continue
		}
		// All runs have the same error: so each counts the same, also one that happens to be high.
		var values []float64
		weight, variance := 1/float64(len(some)), 0.
		for _, one := range some {
			e := estimateOf(one, method)
			values = append(values, e.value+math.Log(weight))
			variance += weight * weight * e.se * e.se
		}
		splits = append(splits, estimate{floats.LogSumExp(values), math.Sqrt(variance)})
	}
	return splits
}

// meanEvidence is the log of the mean of Z over splits, with its standard error by the delta method; NaN where a split
// has none.
func meanEvidence(splits []estimate) estimate {
	var values []float64
	for _, s := range splits {
		values = append(values, s.value)
	}
	total, variance := floats.LogSumExp(values), 0.
	for _, s := range splits {
		share := math.Exp(s.value - total)
		variance += share * share * s.se * s.se
	}
	return estimate{total - math.Log(float64(len(splits))), math.Sqrt(variance)}
}

// part returns a split's contribution to the variance of the mean over splits.
func part(split, mean estimate) float64 {
	p := math.Exp(split.value-mean.value) / evidenceSplits * split.se
	return p * p
}

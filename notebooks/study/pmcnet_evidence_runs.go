package study

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// This file combines the runs of a row of the evidence benchmark, and chooses the split of the next run.

// mostEvidenceRuns is the largest number of whole runs, and of replica exchanges, of a row. After these the row keeps
// the standard error that it has.
const mostEvidenceRuns = 30

// smallShare is the share of the mean of Z below which a split has no whole run and no replica exchange, even if what
// is known of it is three standard errors too low.
const smallShare = .02

// enoughToSay is the number of whole runs on a doubtful split before its first replica exchange, which takes longer
// than these. A split is doubtful if the runs give it less than smallShare, but their errors allow more.
const enoughToSay = 3

// lesserShare is the share of the mean, by SMC, below which a split's first replica exchange is half as long as others.
const lesserShare = .1

// evidenceRuns holds the runs of a row on each split: a quick run, and the whole runs and replica exchanges that
// replace it.
type evidenceRuns struct {
	quick            [evidenceSplits]Result
	whole, exchanged [evidenceSplits][]Result
}

// evidenceKind is which of the runs.
type evidenceKind string

const (
	quickRun    evidenceKind = "quick run"
	wholeRun    evidenceKind = "whole run"
	exchangeRun evidenceKind = byExchange
)

// within is the standard error at which a row has enough replica exchanges. For SMC three times this is enough: it
// needs three times the time for the same error, and only checks replica exchange.
func (r evidenceRow) within() float64 {
	if r.learnt {
		return .2
	}
	return .05
}

// next chooses the next run. First come the splits without a run that may have more than a small share of the mean, the
// largest first. Then, while a standard error is too large, the next run is where it lowers the error most. more is
// false at the end: se is 0 if all errors are small enough, or the error that is left after too many runs.
func (runs *evidenceRuns) next(within float64) (next evidenceRun, se float64, more bool) {
	for _, c := range []struct {
		kind   evidenceKind
		method string
		enough float64
	}{{wholeRun, byTempering, 3 * within}, {exchangeRun, byExchange, within}} {
		some, count, missing := runs.some(c.method), 0, runs.shares()
		for k := range missing {
			if count += len(some[k]); len(some[k]) > 0 {
				missing[k] = math.Inf(-1)
			}
		}
		if k := floats.MaxIdx(missing[:]); missing[k] >= math.Log(smallShare) {
			if c.kind == exchangeRun && runs.share(k) < smallShare && len(runs.whole[k]) < enoughToSay {
				return evidenceRun{kind: wholeRun, split: k, length: 1}, math.NaN(), true
			}
			next = evidenceRun{kind: c.kind, split: k, length: 1}
			if c.kind == exchangeRun && runs.share(k) < lesserShare {
				next.length = .5
			}
			return next, math.NaN(), true
		}
		e, gain := runs.of(c.method)
		if e.se <= c.enough {
			continue
		}
		if count < mostEvidenceRuns {
			next = evidenceRun{kind: c.kind, split: floats.MaxIdx(gain[:]), length: 1}
			if c.kind == exchangeRun {
				next.length = runs.longer(c.method, next.split, .95*c.enough)
			}
			return next, e.se, true
		}
		se = max(se, e.se)
	}
	return evidenceRun{}, se, false
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

// share returns the share of the mean of Z that a split has by SMC.
func (runs *evidenceRuns) share(split int) float64 {
	known := runs.splits(byTempering)
	return math.Exp(known[split].value-meanEvidence(known).value) / evidenceSplits
}

// longer returns the length of the next run on a split that lowers the standard error to `within`, in halves, from .5
// to 8. If other splits need more runs too, it is the length of all runs before; without a run before, it is 1.
func (runs *evidenceRuns) longer(method string, split int, within float64) float64 {
	splits := runs.splits(method)
	e := meanEvidence(splits)
	own, before := part(splits[split], e), lengthOfAll(runs.some(method)[split])
	if before == 0 {
		return 1
	}
	length := before
	if left := within*within - (e.se*e.se - own); left > 0 {
		length = min(before*(own/left-1), 8)
	}
	return max(.5, math.Ceil(2*length)/2)
}

// largest is the split whose quick run gives the largest evidence. All splits of a row have its ladder, so that one
// compilation serves them.
func (runs *evidenceRuns) largest() int {
	var values []float64
	for _, quick := range runs.quick {
		values = append(values, estimateOf(quick, byTempering).value)
	}
	return floats.MaxIdx(values)
}

// estimate is a log evidence, of a split or of the mean over them, with its standard error.
type estimate struct{ value, se float64 }

func estimateOf(r Result, method string) estimate {
	return estimate{r.Values[method], r.Values[method+" error"]}
}

// of returns an estimator's log of the mean over splits of the mean of Z over a split's runs. The standard error
// follows by the delta method from the runs' own. gain is the decrease of the variance by another run on each split. A
// split without a run of this estimator takes SMC's quick run.
func (runs *evidenceRuns) of(method string) (e estimate, gain [evidenceSplits]float64) {
	splits := runs.splits(method)
	e = meanEvidence(splits)
	for k := range splits {
		gain[k] = part(splits[k], e) / (lengthOfAll(runs.some(method)[k]) + 1)
	}
	return e, gain
}

// splits returns an estimator's log Z of each split; without a run of its own it is the quick run's, by SMC.
func (runs *evidenceRuns) splits(method string) (splits []estimate) {
	for k, some := range runs.some(method) {
		if len(some) == 0 {
			splits = append(splits, estimateOf(runs.quick[k], byTempering))
			continue
		}
		// All runs of one length have the same error: so each counts by its length, also one that happens to be high.
		var values []float64
		all, variance := lengthOfAll(some), 0.
		for _, one := range some {
			e, weight := estimateOf(one, method), lengthOf(one)/all
			values = append(values, e.value+math.Log(weight))
			variance += weight * weight * e.se * e.se
		}
		splits = append(splits, estimate{floats.LogSumExp(values), math.Sqrt(variance)})
	}
	return splits
}

// some returns the runs of an estimator.
func (runs *evidenceRuns) some(method string) *[evidenceSplits][]Result {
	if method == byExchange {
		return &runs.exchanged
	}
	return &runs.whole
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

// byLength is the entry of a kept result for its length in units of a first run of its kind; 1 where it is missing.
const byLength = "length"

// lengthOf returns the length of a run; lengthOfAll sums the lengths of a split's runs.
func lengthOf(one Result) float64 {
	if length, ok := one.Values[byLength]; ok {
		return length
	}
	return 1
}

func lengthOfAll(some []Result) (sum float64) {
	for _, one := range some {
		sum += lengthOf(one)
	}
	return sum
}

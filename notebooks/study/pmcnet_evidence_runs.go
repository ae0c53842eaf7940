package study

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// This file says what the runs of a row of the evidence benchmark give, and on which split the next one is to be made.

// mostEvidenceRuns is how many whole runs, and how many replica exchanges, a row may have before it is left with the
// standard error that it has.
const mostEvidenceRuns = 30

// smallShare is the share of the mean of Z below which a split has no whole run and no replica exchange, even if what
// is known of it is three standard errors too low.
const smallShare = .02

// enoughToSay is how many whole runs are made on a split that has less than a small share by them, and may have more by
// their errors, before it has a replica exchange, which takes longer than these.
const enoughToSay = 3

// lesserShare is how much of the mean a split has, by SMC, whose first replica exchange is half as long as others.
const lesserShare = .1

// evidenceRuns are the runs of a row on each split: a quick one, and whole ones and replica exchanges, which replace
// it.
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

// within is the standard error of a row that is enough of replica exchange; three times that is of SMC, which needs
// three times the time for the same error and is there to check it.
func (r evidenceRow) within() float64 {
	if r.learnt {
		return .2
	}
	return .05
}

// next is the run that is to be made: first those of splits that may have more than a small share of the mean, the
// largest first, then, while a standard error is too large, where it helps most; none where they are small enough, and
// then se is 0, or there were too many, and then se is the error that is left.
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

// shares are how much of the mean of Z each split may have, as a logarithm: three standard errors above the least that
// its quick run and its whole ones say.
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

// share is how much of the mean of Z a split has by SMC.
func (runs *evidenceRuns) share(split int) float64 {
	known := runs.splits(byTempering)
	return math.Exp(known[split].value-meanEvidence(known).value) / evidenceSplits
}

// longer is how long the next run on a split should be, so that the standard error falls to what is wanted: in halves,
// from .5 to 8; as long as all before where other splits need more runs too, and 1 where there was none.
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

// of is an estimator's log of the mean over splits of the mean of Z over a split's runs, with its standard error by the
// delta method from those that the runs state, and by how much another run on each split would lower its
// variance. Of a split without a whole run it is SMC's.
func (runs *evidenceRuns) of(method string) (e estimate, gain [evidenceSplits]float64) {
	splits := runs.splits(method)
	e = meanEvidence(splits)
	for k := range splits {
		gain[k] = part(splits[k], e) / (lengthOfAll(runs.some(method)[k]) + 1)
	}
	return e, gain
}

// splits are an estimator's log Z of each split; without a whole run it is that of the quick one, by SMC.
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

// some are the runs that an estimator has.
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

// part is what a split adds to the variance of the mean over them.
func part(split, mean estimate) float64 {
	p := math.Exp(split.value-mean.value) / evidenceSplits * split.se
	return p * p
}

// byLength is the entry of a kept result for how often it is as long as a first run of its kind; 1 where it is missing.
const byLength = "length"

// lengthOf is the length of a run, and that of all runs of a split.
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

package smc

import (
	"math"

	"gobnn/bayes/fit"
)

// What makes a result doubtful.
const (
	fewFirst        = 20   // effective first ancestors below which the genealogy says little of the error
	fewChains       = 200  // of a waste-free sampler, below which it says too little
	highCorrelation = 0.5  // left by the moves at a temperature
	lowAcceptance   = 0.05 // of the moves at a temperature
	manyRejected    = 0.1  // share of proposals that are not finite
)

// expectedUnmoved returns the number of n particles that may not have moved because by chance all their moves were
// rejected, at the mean acceptance. It allows for some more, since acceptance differs between places.
func (r StepRecord) expectedUnmoved(n int) float64 {
	return float64(n) * (mostUnmoved + 2*math.Pow(1-r.Acceptance, float64(r.Transitions)))
}

// doubts are those about a finished run.
func (m *machine) doubts(trace []StepRecord) (all fit.Doubts) {
	all.If(m.Repeated != "", "repeated", "%s", m.Repeated)
	last := trace[len(trace)-1]
	if !m.part { // else the standard error is the caller's business
		all.If(last.First < fewFirst, "few ancestors", "all particles descend from few of the first ones (effectively from "+
			"%.1f): the standard error of the log evidence is unreliable; take more particles", last.First)
		all.If(m.WasteFree > 0 && m.chains() < fewChains, "few chains", "there are only %d waste-free chains, too few for "+
			"the standard error of the log evidence: with 100 chains it comes out too small by a fifth; take more particles, "+
			"or a smaller WasteFree", m.chains())
	}
	low, where, proposals, rejected := 1., 0., 0, 0
	high, still := 0., 0.
	var stuck StepRecord
	for _, r := range trace {
		if r.Unmoved > stuck.Unmoved && float64(r.Unmoved) > r.expectedUnmoved(m.chains()) {
			stuck = r
		}
		if r.Transitions > 0 && r.Acceptance < low {
			low, where = r.Acceptance, r.Place
		}
		if r.Correlation > high {
			high, still = r.Correlation, r.Place
		}
		proposals += r.Transitions * m.chains()
		rejected += r.Rejected
	}
	all.If(low < lowAcceptance, "few accepted", "moves were accepted with a mean probability of only %.3f at power %.4g: "+
		"particles that are copies of each other hardly separate; take a smaller step size, or more moves", low, where)
	all.If(stuck.Unmoved > 0, "unmoved", "%d of %d particles never moved at power %.4g, where the others moved well (%d "+
		"of %d trajectories diverged): they are copies of their ancestors, probably in a region that is narrow for the step "+
		"size, and their share and the log evidence may be wrong; take more moves, or a smaller step size", stuck.Unmoved,
		m.chains(), stuck.Place, stuck.Divergent, stuck.Transitions*m.chains())
	cure := "take more Moves, or 0, which makes as many as it takes"
	if m.Moves == 0 {
		cure = "take another kernel, or give a number of Moves above 100"
	}
	all.If(high > highCorrelation, "correlated", "the moves at power %.4g left the particles' log prior or "+
		"log-likelihood with a correlation of %.2f to its value before them: particles that were copies of each other are "+
		"still close, and the log evidence is too low in most such runs; %s", still, high, cure)
	missing := m.Drift.missing()
	all.If(missing > m.Genealogy.StdErr(Multinomial, m.chains()), "drift", "moving the particles changed the estimate of "+
		"the log evidence by %.2f in all, more than chance explains: a part of the posterior had too few particles before "+
		"the moves; the standard error includes %.2f for this, and the log evidence may be off by more; take longer "+
		"trajectories (HMC.Steps), more moves, or more particles", m.Drift.Sum, missing)
	all.If(float64(rejected) > manyRejected*float64(proposals), "not finite", "%d of %d proposals had a log-density or a "+
		"gradient that is not finite: check the target", rejected, proposals)
	return all
}

package smc

import (
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
)

// Details are what a run of Tempered adds to its result: fit.Details[*smc.Details](result).
type Details struct {
	Trace []StepRecord // one for each temperature
	// Tuned are the step size and the scales of the last moves; the step size is 0 for kernels that are not Tunable.
	Tuned mcmc.Tuned
	// Evaluations counts the log-likelihoods of single particles that were evaluated, with or without the gradient.
	Evaluations int
	// NonFinite counts proposals that were rejected because their log-density, or its gradient, was not finite.
	// Divergent counts trajectories that were given up because the error of their energy was too large.
	NonFinite, Divergent int
}

// StepRecord summarises one temperature: its weighing and resampling, and the moves that followed.
type StepRecord struct {
	Place       float64 // the likelihood's power
	LogEvidence float64 // increase of the log evidence
	ESS         float64 // effective sample size after weighing, before resampling
	Ancestors   float64 // number of different ancestors, of those drawn if waste-free; else J if not resampled
	First       float64 // effective number of first particles that all descend from, 1 / sum_i G_i^2 of Genealogy
	Resampled   bool
	NonFinite   int     // particles whose log-likelihood is not finite: they have weight 0
	Transitions int     // number of transitions of each particle, or chain, that followed; 0: none
	Acceptance  float64 // their mean acceptance; NaN if there were none
	Correlation float64 // of log prior or log-likelihood after them with that before: see Tempered.Moves
	StepSize    float64 // of the last of them; 0 for kernels that are not Tunable
	Steps       int     // of a trajectory, where they are chosen (mcmc.Steered); else 0
	Rejected    int     // proposals whose log-density, or its gradient, was not finite
	Divergent   int     // trajectories that were given up since their energy was off by too much
	Unmoved     int     // particles, or chains, that none of the transitions moved from where resampling put them
	Drift       float64 // of the log evidence by the moves over the steps before, see drift
	Seconds     float64
}

// evidence is the log evidence of what is taken in so far, with its standard error.
func (m *machine) evidence() (value, stdErr float64) {
	return m.LogEvidence, math.Hypot(m.Genealogy.StdErr(Multinomial, m.chains()), m.Drift.missing())
}

// result is the result so far.
func (m *machine) result(at *fit.Trail[StepRecord]) (*fit.Result, error) {
	host, err := at.Host(phiName, logWeightsName, scaleName)
	if err != nil {
		return nil, fmt.Errorf("smc: %w", err)
	}
	draws := bayes.Draws{Phi: host[phiName], Evidence: bayes.Evidence{Value: math.NaN(), StdErr: math.NaN()}}
	if draws.LogWeights, err = compute.Float64s(host[logWeightsName]); err != nil {
		return nil, fmt.Errorf("smc: %w", err)
	}
	scale, err := compute.Float64s(host[scaleName])
	if err != nil {
		return nil, fmt.Errorf("smc: %w", err)
	}
	details := &Details{
		Trace: slices.Clone(at.Records), // a run goes on with its own
		Tuned: mcmc.Tuned{StepSize: m.position.StepSize, Scale: scale}, Evaluations: m.Evaluations,
	}
	for _, t := range at.Records {
		details.NonFinite += t.Rejected
		details.Divergent += t.Divergent
	}
	result := &fit.Result{
		Draws: draws, Status: at.Status, Elapsed: m.Elapsed(), Approximation: m.approximation(), Details: []any{details},
	}
	if at.Status == run.Completed {
		result.Draws.Evidence.Value, result.Draws.Evidence.StdErr = m.evidence()
		result.Warnings = m.warnings(at.Records)
	}
	return result, nil
}

// approximation says which distribution the particles are of; empty if it is the posterior.
func (m *machine) approximation() string {
	if m.Next == finished || m.Next == toScout {
		return ""
	}
	return fmt.Sprintf("the prior times the likelihood to the power %.4g, or on the way to it", m.Place)
}

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

// warnings lists what makes a finished run doubtful.
func (m *machine) warnings(trace []StepRecord) []string {
	var out []string
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if m.Repeated != "" {
		out = append(out, m.Repeated)
	}
	last := trace[len(trace)-1]
	if !m.part { // else the standard error is the caller's business
		if last.First < fewFirst {
			warn("all particles descend from few of the first ones (effectively from %.1f): the standard error of the log "+
				"evidence is unreliable; take more particles", last.First)
		}
		if m.WasteFree > 0 && m.chains() < fewChains {
			warn("there are only %d waste-free chains, too few for the standard error of the log evidence: with 100 chains it "+
				"comes out too small by a fifth; take more particles, or a smaller WasteFree", m.chains())
		}
	}
	if lost := m.Scouts.warning(m.chains()); lost != "" {
		out = append(out, lost)
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
	if low < lowAcceptance {
		warn("moves were accepted with a mean probability of only %.3f at power %.4g: particles that are copies of each "+
			"other hardly separate; take a smaller step size, or more moves", low, where)
	}
	if stuck.Unmoved > 0 {
		warn("%d of %d particles never moved at power %.4g, where the others moved well (%d of %d trajectories diverged): "+
			"they are copies of their ancestors, probably in a region that is narrow for the step size, and their share and "+
			"the log evidence may be wrong; take more moves, or a smaller step size", stuck.Unmoved, m.chains(), stuck.Place,
			stuck.Divergent, stuck.Transitions*m.chains())
	}
	if high > highCorrelation {
		cure := "take more Moves, or 0, which makes as many as it takes"
		if m.Moves == 0 {
			cure = "take another kernel, or give a number of Moves above 100"
		}
		warn("the moves at power %.4g left the particles' log prior or log-likelihood with a correlation of %.2f to its "+
			"value before them: particles that were copies of each other are still close, and the log evidence is too low in "+
			"most such runs; %s", still, high, cure)
	}
	if missing := m.Drift.missing(); missing > m.Genealogy.StdErr(Multinomial, m.chains()) {
		warn("moving the particles changed the estimate of the log evidence by %.2f in all, more than chance explains: a "+
			"part of the posterior had too few particles before the moves; the standard error includes %.2f for this, and the "+
			"log evidence may be off by more; take longer trajectories (HMC.Steps), more moves, or more particles",
			m.Drift.Sum, missing)
	}
	if float64(rejected) > manyRejected*float64(proposals) {
		warn("%d of %d proposals had a log-density or a gradient that is not finite: check the target",
			rejected, proposals)
	}
	return out
}

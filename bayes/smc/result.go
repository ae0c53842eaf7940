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
}

// StepRecord summarises one temperature: its weighing and resampling, and the moves that followed.
type StepRecord struct {
	Place       float64 // the likelihood's power
	LogEvidence float64 // increase of the log evidence
	ESS         float64 // effective sample size after weighing, before resampling
	First       float64 // effective number of first particles that all descend from, 1 / sum_i G_i^2 of Genealogy
	NonFinite   int     // particles whose log-likelihood is not finite: they have weight 0
	Transitions int     // number of transitions of each particle, or chain, that followed; 0: none
	Acceptance  float64 // their mean acceptance; NaN if there were none
	Correlation float64 // of log prior or log-likelihood after them with that before: see Tempered.Moves
	Steps       int     // of a trajectory, where they are chosen (mcmc.Steered); else 0
	Rejected    int     // proposals whose log-density, or its gradient, was not finite
	Divergent   int     // trajectories that were given up since their energy was off by too much
	Unmoved     int     // particles, or chains, that none of the transitions moved from where resampling put them
	Drift       float64 // of the log evidence by the moves over the steps before, see drift
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
	result := &fit.Result{
		Draws: draws, Status: at.Status, Elapsed: m.Elapsed(), Approximation: m.approximation(), Details: []any{details},
	}
	if at.Status == run.Completed {
		result.Draws.Evidence = m.evidence()
		result.Doubts = m.doubts(at.Records)
	}
	return result, nil
}

// evidence is the log evidence of what is taken in so far, with its standard error.
func (m *machine) evidence() bayes.Evidence {
	return bayes.Evidence{
		Value: m.LogEvidence, StdErr: math.Hypot(m.Genealogy.StdErr(Multinomial, m.chains()), m.Drift.missing()),
	}
}

// approximation says which distribution the particles are of; empty if it is the posterior.
func (m *machine) approximation() string {
	if m.Next == finished {
		return ""
	}
	return fmt.Sprintf("the prior times the likelihood to the power %.4g, or on the way to it", m.Place)
}
